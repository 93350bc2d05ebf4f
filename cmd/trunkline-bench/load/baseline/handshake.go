package baseline

import (
	"bufio"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const handshakeTimeout = 15 * time.Second

// handshake answers an upgrade request, RFC 6455 section 4.2, and returns the client's stream,
// the number in the token; without a token it is 0.
func handshake(conn net.Conn) (stream int, err error) {
	if err := conn.SetDeadline(time.Now().Add(handshakeTimeout)); err != nil {
		return 0, err
	}

	request, err := http.ReadRequest(bufio.NewReaderSize(conn, 1024))
	if err != nil {
		return 0, err
	}

	key := request.Header.Get("Sec-WebSocket-Key")
	if key == "" {
		return 0, errors.New("not an upgrade")
	}

	token, has := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if has {
		stream, err = strconv.Atoi(token)
		if err != nil {
			return 0, fmt.Errorf("the token is not a stream: %w", err)
		}
	}

	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\n\r\n", base64.StdEncoding.EncodeToString(sum[:]))
	if err != nil {
		return 0, err
	}

	return stream, conn.SetDeadline(time.Time{})
}
