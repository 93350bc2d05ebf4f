package aisession

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/gorilla/websocket"
)

// dialProvider connects to a provider with TLS and a WebSocket handshake (gorilla checks the response),
// and detaches its socket from Go's poller. early has the bytes that followed the response.
func (s *Session) dialProvider(ctx context.Context) (conn net.Conn, sock *nonblockingConn, early []byte, err error) {
	settings, provider := s.service.settings, s.request.Provider
	var upgrade *upgradeConn
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		tcp, err := s.service.deps.Providers.Guard(provider).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}

		if tcp, ok := tcp.(*net.TCPConn); ok {
			setTCPOptions(tcp)
		}

		sock = &nonblockingConn{Conn: tcp}
		upgrade = &upgradeConn{Conn: sock}
		return upgrade, nil
	}

	dialer := websocket.Dialer{
		HandshakeTimeout: settings.ConnectTimeout, ReadBufferSize: readBuffer, WriteBufferSize: handshakeBuffer,
		NetDialContext: dial,
		NetDialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}

			secured, err := tlsHandshake(ctx, sock, address, s.service.deps.TLS)
			if err != nil {
				_ = sock.Close() // the handshake's error is more specific
				return nil, err
			}

			upgrade.Conn = secured
			return upgrade, nil
		},
	}

	header := make(http.Header, len(provider.Headers))
	for name, value := range provider.Headers {
		header.Set(name, value)
	}

	address := s.protocol.Prepare(s.dialectConfig(), provider.URL, header)
	_, response, err := dialer.DialContext(ctx, address, header)
	if err != nil {
		if response != nil {
			return nil, nil, nil, &handshakeError{response.StatusCode}
		}
		return nil, nil, nil, fmt.Errorf("connecting to the provider: %w", err)
	}

	err = sock.detach()
	if err == nil && !upgrade.headerDone {
		err = errors.New("the provider's answer to the handshake is not HTTP/1.1")
	}
	if err != nil {
		_ = sock.Close()
		return nil, nil, nil, err
	}

	return upgrade.Conn, sock, upgrade.bytesAfterHeader, nil
}

// tlsHandshake makes the TLS handshake. A nil base uses the system's CAs.
func tlsHandshake(ctx context.Context, conn net.Conn, address string, base *tls.Config) (*tls.Conn, error) {
	config := &tls.Config{}
	if base != nil {
		config = base.Clone()
	}

	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		config.ServerName = host
	}

	secured := tls.Client(conn, config)
	return secured, secured.HandshakeContext(ctx)
}

// upgradeConn is a connection that delivers no bytes beyond the handshake response, so that none stay in the
// buffer of gorilla's reader: the ticks read all that follows.
type upgradeConn struct {
	net.Conn
	response         []byte // response bytes so far
	headerDone       bool
	bytesAfterHeader []byte // bytes after the header
}

const maxResponseHeader = 64 << 10 // bytes

// Read implements net.Conn.
func (u *upgradeConn) Read(b []byte) (int, error) {
	if u.headerDone {
		return 0, io.EOF
	}

	n, err := u.Conn.Read(b)
	receivedBefore := len(u.response)
	u.response = append(u.response, b[:n]...)
	if len(u.response) > maxResponseHeader {
		return 0, fmt.Errorf("the provider's answer has more than %d bytes", maxResponseHeader)
	}

	end := endOfHeader(u.response)
	if end > 0 && bytes.HasPrefix(u.response, []byte("HTTP/1.1 101")) {
		u.bytesAfterHeader, u.headerDone = u.response[end:], true
		return end - receivedBefore, nil
	}

	return n, err
}

// endOfHeader returns the offset after the empty line that ends a header, or 0 if there is none. Lines
// may end without CR.
func endOfHeader(b []byte) int {
	for offset := 0; ; {
		i := bytes.IndexByte(b[offset:], '\n')
		if i < 0 {
			return 0
		}

		offset += i + 1
		rest := bytes.TrimPrefix(b[offset:], []byte("\r"))
		if bytes.HasPrefix(rest, []byte("\n")) {
			return len(b) - len(rest) + 1
		}
	}
}
