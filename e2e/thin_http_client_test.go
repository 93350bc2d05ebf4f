package e2e

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// thinClient sends requests to one server over one persistent connection of HTTP/1.1 and TLS, for
// benchmarks that share the machine with the server: net/http's client uses as much CPU as the
// measured server.
type thinClient struct {
	conn *tls.Conn
	in   *bufio.Reader
	out  []byte
}

func dialThin(n *node) (*thinClient, error) {
	conn, err := tls.Dial("tcp", n.address, &tls.Config{RootCAs: n.roots})
	if err != nil {
		return nil, err
	}
	return &thinClient{conn: conn, in: bufio.NewReader(conn)}, nil
}

// ask sends a request and expects 200 and a response with a Content-Length. head is the request
// line and the headers, each with its line end.
func (c *thinClient) ask(head, body string) error {
	c.out = append(append(c.out[:0], head...), "Host: node\r\nContent-Length: "...)
	c.out = append(append(strconv.AppendInt(c.out, int64(len(body)), 10), "\r\n\r\n"...), body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return err
	}

	status, err := c.in.ReadString('\n')
	if err != nil {
		return err
	}

	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}

		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			break
		}

		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			length, err = strconv.Atoi(string(value))
			if err != nil {
				return err
			}
		}
	}

	if !strings.HasPrefix(status, "HTTP/1.1 200 ") || length < 0 {
		text, err := io.ReadAll(io.LimitReader(c.in, int64(max(length, 0))))
		return fmt.Errorf("%s %s (%v)", strings.TrimSpace(status), text, err)
	}

	_, err = c.in.Discard(length)
	return err
}
