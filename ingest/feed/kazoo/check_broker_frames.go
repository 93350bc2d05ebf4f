package kazoo

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
)

const (
	maxFrameBytes = 128 << 10 // of a frame's payload, as negotiated
	// maxPendingBytes and maxPendingMessages bound what a broker sends and Read has not taken: the
	// client's own queue has no end, and a broker may ignore the prefetch count.
	maxPendingBytes    = 64 << 20
	maxPendingMessages = 2 * prefetch
)

// Parts of a frame of AMQP 0-9-1 (section 4.2.3).
const (
	frameMethod    = 1
	frameHeader    = 2
	frameBody      = 3
	frameHeartbeat = 8

	frameHeaderBytes  = 7  // type, channel, size
	contentSizeBytes  = 12 // of a content header: class, weight, size of the body
	contentSizeOffset = 4
)

// guardedConn is a connection to a broker that may lie. It checks each frame before the
// client sees it, because the client panics on frames at a wrong place, in a goroutine of its
// own, and believes every size of a message.
type guardedConn struct {
	net.Conn

	// State of the frame that is being read: of Read alone.
	head        []byte // its header and, of a content header, the begin of its payload
	checkLength int    // length of head at which it is checked
	rest        int    // bytes after head, with the end octet
	bodyLeft    uint64 // bytes of the current message's body that are still to come

	// What the broker has sent and Read of the session has not taken, see take.
	pendingBytes    atomic.Int64
	pendingMessages atomic.Int64
}

func newGuardedConn(conn net.Conn) *guardedConn {
	return &guardedConn{Conn: conn, head: make([]byte, 0, frameHeaderBytes+contentSizeBytes),
		checkLength: frameHeaderBytes}
}

// take tells that Read of the session has taken a message.
func (g *guardedConn) take(bytes int) {
	g.pendingMessages.Add(-1)
	g.pendingBytes.Add(-int64(bytes))
}

// Read implements net.Conn. It returns an error for a frame that no broker sends.
func (g *guardedConn) Read(b []byte) (int, error) {
	n, err := g.Conn.Read(b)
	checkErr := g.check(b[:n])
	if checkErr != nil {
		_ = g.Conn.Close() // the client then reports the error of this Read
		return 0, checkErr
	}
	return n, err
}

// check follows the frames in b, which continue those of earlier calls.
func (g *guardedConn) check(b []byte) error {
	for len(b) > 0 {
		if len(g.head) == g.checkLength {
			n := min(len(b), g.rest)
			g.rest -= n
			b = b[n:]

			if g.rest == 0 {
				g.head, g.checkLength = g.head[:0], frameHeaderBytes
			}

			continue
		}

		n := min(len(b), g.checkLength-len(g.head))
		g.head = append(g.head, b[:n]...)
		b = b[n:]

		if len(g.head) == g.checkLength {
			if err := g.checkHead(); err != nil {
				return err
			}
		}
	}

	return nil
}

// checkHead checks the frame whose head is complete, or how much more of it is needed.
func (g *guardedConn) checkHead() error {
	kind, channel, size := g.head[0], binary.BigEndian.Uint16(g.head[1:]), binary.BigEndian.Uint32(g.head[3:])
	if g.checkLength > frameHeaderBytes {
		g.rest = int(size) - contentSizeBytes + 1
		return g.checkContent(binary.BigEndian.Uint64(g.head[frameHeaderBytes+contentSizeOffset:]))
	}

	g.rest = int(size) + 1
	switch {
	case size > maxFrameBytes:
		return fmt.Errorf("the broker sent a frame of %d bytes", size)
	case kind == frameHeartbeat && channel == 0 && size == 0, kind == frameMethod && g.bodyLeft == 0:
		return nil
	case kind == frameMethod && channel != 0: // the rest of a message is not sent, such as when the channel closes
		g.bodyLeft = 0
		return nil
	case kind == frameMethod:
		return nil
	case kind == frameHeader && channel != 0 && size >= contentSizeBytes && g.bodyLeft == 0:
		g.checkLength, g.rest = frameHeaderBytes+contentSizeBytes, 0
		return nil
	case kind == frameBody && channel != 0 && uint64(size) <= g.bodyLeft:
		g.bodyLeft -= uint64(size)
		return nil
	}

	return fmt.Errorf("the broker sent a frame of type %d on channel %d where none belongs", kind, channel)
}

// checkContent counts a message whose body has size bytes.
func (g *guardedConn) checkContent(size uint64) error {
	if size > maxPendingBytes {
		return fmt.Errorf("the broker announced a message of %d bytes", size)
	}
	g.bodyLeft = size
	if g.pendingBytes.Add(int64(size)) > maxPendingBytes || g.pendingMessages.Add(1) > maxPendingMessages {
		return fmt.Errorf("the broker sends more than was asked for: over %d messages or %d bytes", maxPendingMessages,
			maxPendingBytes)
	}
	return nil
}
