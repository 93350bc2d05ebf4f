package aicheck

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/gorilla/websocket"
)

// connect opens the WebSocket with the service's options: no proxy, no redirects, no compression.
func connect(ctx context.Context, config Config) (*websocket.Conn, time.Duration, error) {
	dialer := websocket.Dialer{HandshakeTimeout: connectTimeout, TLSClientConfig: config.TLS}
	began := time.Now()
	conn, response, err := dialer.DialContext(ctx, config.URL, config.Header)
	if errors.Is(err, websocket.ErrBadHandshake) && response != nil {
		err = fmt.Errorf("the handshake is answered with %s, want 101 and the headers of RFC 6455", response.Status)
		if location := response.Header.Get("Location"); location != "" {
			err = fmt.Errorf("%w; the service follows no redirect", err)
		}
	}
	return conn, time.Since(began), err
}

// security returns the TLS version and cipher suite of the connection.
func security(conn *websocket.Conn) string {
	secured, ok := conn.NetConn().(*tls.Conn)
	if !ok {
		return ", without TLS: the service connects so only to networks that its operator allows"
	}
	return ", " + tls.VersionName(secured.ConnectionState().Version)
}

func rounded(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(100 * time.Microsecond)
	}
	return d.Round(time.Microsecond)
}
