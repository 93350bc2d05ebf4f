package embedded

import (
	"encoding/binary"
	"errors"
	"io"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrame is the largest request taken: a produce of one batch is below
// 2 MiB.
const maxFrame = 16 << 20

var errFrame = errors.New("not a Kafka request this broker takes")

// checkedConn lets through only frames that kfake survives: of a bounded size,
// with a request it knows in a version that exists.
type checkedConn struct {
	net.Conn
	head    [8]byte // size, request key, version
	pending []byte  // of head, checked and not read yet
	left    int     // bytes of the frame after head
}

// Read is part of net.Conn; kfake has one reader at a time.
func (c *checkedConn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 && c.left == 0 {
		if _, err := io.ReadFull(c.Conn, c.head[:]); err != nil {
			return 0, err
		}
		size, err := checkHead(c.head)
		if err != nil {
			return 0, err // kfake closes the connection
		}
		c.pending, c.left = c.head[:], size-4
	}
	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}
	n, err := c.Conn.Read(p[:min(len(p), c.left)])
	c.left -= n
	return n, err
}

// checkHead answers the frame's size.
func checkHead(head [8]byte) (int, error) {
	size := binary.BigEndian.Uint32(head[:])
	key := int16(binary.BigEndian.Uint16(head[4:]))
	version := int16(binary.BigEndian.Uint16(head[6:]))
	// Key, version, correlation id, and the client id's length.
	if size < 10 || size > maxFrame {
		return 0, errFrame
	}
	request := kmsg.RequestForKey(key)
	if request == nil || version < 0 {
		return 0, errFrame
	}
	// A version of ApiVersions that does not exist has an answer of its own.
	if version > request.MaxVersion() && key != int16(kmsg.ApiVersions) {
		return 0, errFrame
	}
	return int(size), nil
}
