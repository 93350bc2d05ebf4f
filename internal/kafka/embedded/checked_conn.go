package embedded

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxFrameBytes is the maximum request size: a produce request of one batch is below 2 MiB.
const maxFrameBytes = 16 << 20

var errUnsupportedRequest = errors.New("not a Kafka request this broker takes")

// checkedConn is kfake's end of a connection. It passes on only frames that kfake can
// handle (bounded size, existing request and version) and delays responses until the
// log on which they depend is synced.
type checkedConn struct {
	net.Conn
	broker *Broker
	// internal is set for the broker's own connection, which may write to paused
	// partitions.
	internal bool

	head      [8]byte // size, request key, version
	frame     []byte  // buffer for a produce request
	pending   []byte  // checked bytes of head or frame, not read yet
	remaining int     // bytes of the request after pending

	mu       sync.Mutex
	requests []request // requests without a response, oldest first
	closed   bool
}

// request holds the conditions for sending its response.
type request struct {
	key        kmsg.Key
	number     int64 // of a produce request
	partitions []partition
}

// Read implements net.Conn; kfake reads from one goroutine.
func (c *checkedConn) Read(p []byte) (int, error) {
	if len(c.pending) == 0 && c.remaining == 0 {
		if err := c.readFrame(); err != nil {
			return 0, err // kfake closes the connection
		}
	}

	if len(c.pending) > 0 {
		n := copy(p, c.pending)
		c.pending = c.pending[n:]
		return n, nil
	}

	n, err := c.Conn.Read(p[:min(len(p), c.remaining)])
	c.remaining -= n
	return n, err
}

// readFrame reads the head of a request, and a produce request completely.
func (c *checkedConn) readFrame() error {
	_, err := io.ReadFull(c.Conn, c.head[:])
	if err != nil {
		return err
	}

	size, err := checkHead(c.head)
	if err != nil {
		return err
	}

	r := request{key: kmsg.Key(binary.BigEndian.Uint16(c.head[4:]))}
	// The head has the size and four bytes of the request, its key and version.
	c.pending, c.remaining = c.head[:], size-4
	if r.key == kmsg.Produce {
		if cap(c.frame) < 4+size {
			c.frame = make([]byte, 4+size)
		}

		c.frame = c.frame[:4+size]
		copy(c.frame, c.head[:])
		_, err = io.ReadFull(c.Conn, c.frame[len(c.head):])
		if err != nil {
			return err
		}

		r.partitions, err = c.broker.producedPartitions(c.frame[4:])
		if err != nil {
			return err
		}

		c.pending, c.remaining = c.frame, 0
		c.broker.countProduced(size)
	}

	if r.key == kmsg.DeleteTopics {
		c.broker.durability.deletionMu.Lock()
	}

	for {
		err := c.registerRequest(r)
		if err != nil && r.key == kmsg.DeleteTopics {
			c.broker.durability.deletionMu.Unlock()
		}
		if !errors.Is(err, errPaused) {
			return err
		}
		c.broker.durability.awaitResume(r.partitions, c.broker.listener.closed)
	}
}

func (c *checkedConn) registerRequest(r request) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	// Close has abandoned what was registered; a request registered after it would count for ever.
	if c.closed {
		return net.ErrClosed
	}

	if r.key == kmsg.Produce {
		r.number, err = c.broker.durability.beginRequest(r.partitions, c.internal)
		if err != nil {
			return err
		}
	}

	c.requests = append(c.requests, r)
	return nil
}

// Write implements net.Conn. kfake calls it once per response, in the order of the
// requests.
func (c *checkedConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	if len(c.requests) == 0 {
		c.mu.Unlock()
		return 0, net.ErrClosed
	}

	r := c.requests[0]
	c.requests = c.requests[1:]
	c.mu.Unlock()

	err := c.broker.makeDurable(r)
	if r.key == kmsg.DeleteTopics {
		c.broker.durability.deletionMu.Unlock()
	}
	if err != nil {
		return 0, err // kfake closes the connection
	}

	return c.Conn.Write(p)
}

// Close implements net.Conn.
func (c *checkedConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.requests {
		switch r.key {
		case kmsg.Produce:
			c.broker.durability.abandonRequest(r.partitions)
		case kmsg.DeleteTopics: // kfake may delete them later: then only the topic's id tells
			c.broker.durability.deletionMu.Unlock()
		}
	}
	c.requests, c.closed = nil, true
	return c.Conn.Close()
}

// checkHead validates the head of a request and returns the frame's size.
func checkHead(head [8]byte) (int, error) {
	size := binary.BigEndian.Uint32(head[:])
	key := int16(binary.BigEndian.Uint16(head[4:]))
	version := int16(binary.BigEndian.Uint16(head[6:]))

	// Key, version, correlation id, and the client id's length.
	if size < 10 || size > maxFrameBytes {
		return 0, errUnsupportedRequest
	}

	request := kmsg.RequestForKey(key)
	if request == nil || version < 0 {
		return 0, errUnsupportedRequest
	}

	// kfake has a special response for unsupported versions of ApiVersions.
	if version > request.MaxVersion() && key != int16(kmsg.ApiVersions) {
		return 0, errUnsupportedRequest
	}

	return int(size), nil
}
