package load

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const handshakeTimeout = 15 * time.Second

// establishedConn is a connection after the handshake.
type establishedConn struct {
	fd            int
	tls           *tls.Conn // nil: plain
	transport     *tlsTransport
	bufferedBytes []byte // bytes received after the handshake
}

// Refusal is a response to an upgrade request other than 101.
type Refusal struct {
	Status int
	Body   string        // its first bytes
	After  time.Duration // Retry-After; 0: none
}

func (r *Refusal) Error() string {
	return strings.TrimSpace(fmt.Sprintf("upgrade refused: %d %s %s", r.Status, http.StatusText(r.Status), r.Body))
}

// dial opens one connection of a group, up to and including the handshake.
func (t *target) dial(ctx context.Context, localAddr netip.Addr, group *Group,
	resumeFrom []byte) (*establishedConn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()

	dialer := net.Dialer{KeepAlive: -1}
	if localAddr.IsValid() {
		dialer.LocalAddr = &net.TCPAddr{IP: localAddr.AsSlice()}
	}

	tcpConn, err := dialer.DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	defer tcpConn.Close() // the duplicate descriptor stays open

	stop := context.AfterFunc(ctx, func() { _ = tcpConn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	o := &establishedConn{fd: -1}
	conn := tcpConn
	if t.tls != nil {
		o.transport = &tlsTransport{conn: tcpConn}
		o.tls = tls.Client(o.transport, t.tls)
		if err := o.tls.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS handshake: %w", err)
		}
		conn = o.tls
	}

	o.bufferedBytes, err = t.upgrade(conn, group, resumeFrom)
	if err != nil {
		return nil, err
	}

	o.fd, err = dupSocket(tcpConn)
	if err != nil {
		return nil, fmt.Errorf("taking the connection over: %w", err)
	}

	if o.transport != nil {
		// The handshake is over: from here the reader feeds the bytes (tlsTransport).
		o.transport.conn, o.transport.fd = nil, o.fd
	}

	return o, nil
}

// dupSocket returns a duplicate descriptor of the connection's socket that the Go runtime does not
// manage. It is non-blocking, because that flag belongs to the socket.
func dupSocket(c net.Conn) (fd int, err error) {
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		return -1, err
	}
	controlErr := raw.Control(func(socket uintptr) { fd, err = unix.FcntlInt(socket, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(controlErr, err)
}

// acceptSuffix is appended to the key in a handshake's response, RFC 6455 section 1.3.
const acceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// upgrade performs the WebSocket handshake.
func (t *target) upgrade(conn net.Conn, group *Group, resumeFrom []byte) (early []byte, err error) {
	nonce := make([]byte, 16)
	_, _ = rand.Read(nonce) // never fails
	key := base64.StdEncoding.EncodeToString(nonce)
	_, err = conn.Write(t.request(key, group, resumeFrom))
	if err != nil {
		return nil, fmt.Errorf("asking for the upgrade: %w", err)
	}

	reader := bufio.NewReaderSize(conn, maxIdleBufferBytes)
	response, err := http.ReadResponse(reader, &http.Request{Method: http.MethodGet})
	if err != nil {
		return nil, fmt.Errorf("reading the upgrade's answer: %w", err)
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusSwitchingProtocols {
		return nil, refusalOf(response)
	}

	sum := sha1.Sum([]byte(key + acceptSuffix))
	if response.Header.Get("Sec-WebSocket-Accept") != base64.StdEncoding.EncodeToString(sum[:]) {
		return nil, errors.New("the upgrade response has a wrong Sec-WebSocket-Accept")
	}

	early, err = reader.Peek(reader.Buffered())
	return bytes.Clone(early), err
}

func (t *target) request(key string, group *Group, resumeFrom []byte) []byte {
	values := maps.Clone(t.query)
	maps.Copy(values, group.Query)
	if len(resumeFrom) > 0 {
		values.Set("since", string(resumeFrom))
	}
	query := values.Encode()

	path := t.path
	if query != "" {
		path += "?" + query
	}

	b := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n", path, t.host, key)
	if group.Token != "" {
		b = fmt.Appendf(b, "Authorization: Bearer %s\r\n", group.Token)
	}

	return append(b, "\r\n"...)
}

func refusalOf(response *http.Response) *Refusal {
	body := make([]byte, 512)
	n, _ := response.Body.Read(body)                                            // best effort: the status suffices
	seconds, _ := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16) // absent: 0
	return &Refusal{response.StatusCode, strings.TrimSpace(string(body[:n])), time.Duration(seconds) * time.Second}
}
