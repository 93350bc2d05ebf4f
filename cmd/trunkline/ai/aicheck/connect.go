package aicheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol/dialect"
)

// connect opens the WebSocket with the service's options: no proxy, no redirects, no compression.
func connect(ctx context.Context, config Config) (*websocket.Conn, time.Duration, error) {
	dialer := websocket.Dialer{HandshakeTimeout: connectTimeout, TLSClientConfig: config.TLS}
	began := time.Now()
	protocol, _ := dialect.Find(config.Protocol)
	header := config.Header.Clone()
	if header == nil {
		header = http.Header{}
	}

	address := protocol.Prepare(config.dialect(), config.URL, header)
	conn, response, err := dialer.DialContext(ctx, address, header)
	if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
		err = fmt.Errorf("the server answered the handshake with %s; expected 101 and the headers of RFC 6455",
			response.Status)
		location := response.Header.Get("Location")
		if location != "" {
			err = fmt.Errorf("%w; Trunkline does not follow redirects", err)
		}
	}

	return conn, time.Since(began), err
}

// tlsSuffix returns the TLS version, or a note that the connection has no TLS, as the end of a
// report line.
func tlsSuffix(conn *websocket.Conn) string {
	tlsConn, ok := conn.NetConn().(*tls.Conn)
	if !ok {
		return ", without TLS: allowed only to networks that the operator has permitted"
	}
	return ", " + tls.VersionName(tlsConn.ConnectionState().Version)
}

func roundDuration(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
