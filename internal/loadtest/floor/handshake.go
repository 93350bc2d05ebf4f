package floor

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const handshakeTimeout = 15 * time.Second

// handshake answers an upgrade, RFC 6455 section 4.2.
func handshake(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return err
	}
	request, err := http.ReadRequest(bufio.NewReaderSize(conn, 1024))
	if err != nil {
		return err
	}
	key := request.Header.Get("Sec-WebSocket-Key")
	if key == "" {
		return errors.New("not an upgrade")
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	if err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}
