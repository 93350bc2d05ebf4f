package aisession

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"trunkline/internal/rawio"
)

// nonblockingConn is a provider's TCP connection, used directly or below TLS. During the handshakes it is an
// ordinary net.Conn. After detach it belongs to the session's ticks: reads and writes never block, and
// the connection is removed from Go's poller, which would wake a thread for each frame. It is for one
// goroutine at a time.
type nonblockingConn struct {
	net.Conn        // before detach
	fd       int    // after detach; -1 when closed
	pending  []byte // bytes that the kernel has not accepted yet
	drained  bool   // the last read emptied the kernel's buffer
}

// errWouldBlock is the error of a read without data. It is temporary: crypto/tls keeps any other error and
// returns it from every later read.
var errWouldBlock error = wouldBlockError{}

type wouldBlockError struct{}

func (wouldBlockError) Error() string   { return "no data has arrived yet" }
func (wouldBlockError) Timeout() bool   { return true }
func (wouldBlockError) Temporary() bool { return true }

const closedFD = -1

// detach removes the connection from Go's poller.
func (c *nonblockingConn) detach() error {
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return errors.New("the provider's connection is not a socket")
	}

	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("detaching the provider's socket: %w", err)
	}

	var failed error
	err = raw.Control(func(fd uintptr) { c.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	err = errors.Join(err, failed)
	if err != nil {
		return fmt.Errorf("detaching the provider's socket: %w", err)
	}

	err = c.Conn.Close() // fd is a duplicate descriptor of the same connection
	c.Conn = nil
	return err
}

// Read implements net.Conn.
func (c *nonblockingConn) Read(b []byte) (int, error) {
	switch {
	case c.Conn != nil:
		return c.Conn.Read(b)
	case c.fd == closedFD:
		return 0, net.ErrClosed
	case c.drained:
		return 0, errWouldBlock
	}

	n, err := rawio.Read(c.fd, b)
	switch {
	case err == unix.EAGAIN:
		c.drained = true
		return 0, errWouldBlock
	case err != nil:
		return 0, err
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}

	// A short read has emptied the buffer: the next one of this tick needs no system call.
	c.drained = n < len(b)
	return n, nil
}

// Write implements net.Conn. It keeps bytes that the kernel does not accept for flush.
func (c *nonblockingConn) Write(b []byte) (int, error) {
	if c.Conn != nil {
		return c.Conn.Write(b)
	}
	if c.fd == closedFD {
		return 0, net.ErrClosed
	}
	if len(c.pending) > 0 {
		c.pending = append(c.pending, b...)
		return len(b), nil
	}

	n, err := rawio.Write(c.fd, b)
	if err != nil && err != unix.EAGAIN {
		return 0, err
	}

	c.pending = append(c.pending, b[n:]...)
	return len(b), nil
}

// flush writes kept bytes. wrote reports whether the kernel accepted any.
func (c *nonblockingConn) flush() (wrote bool, err error) {
	if len(c.pending) == 0 {
		return false, nil
	}

	n, err := rawio.Write(c.fd, c.pending)
	if err != nil {
		if err == unix.EAGAIN {
			err = nil
		}
		return false, err
	}

	c.pending = c.pending[:copy(c.pending, c.pending[n:])]
	return true, nil
}

// SetWriteDeadline implements net.Conn. crypto/tls calls it before its close alert.
func (c *nonblockingConn) SetWriteDeadline(t time.Time) error {
	if c.Conn != nil {
		return c.Conn.SetWriteDeadline(t)
	}
	return nil
}

// Close implements net.Conn.
func (c *nonblockingConn) Close() error {
	if c.Conn != nil {
		return c.Conn.Close()
	}
	if c.fd == closedFD {
		return net.ErrClosed
	}
	fd := c.fd
	c.fd = closedFD
	return unix.Close(fd)
}
