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

// errWouldBlock is the error of a read without data. It reports a timeout, after which crypto/tls can
// continue reading.
var errWouldBlock error = wouldBlockError{}

type wouldBlockError struct{}

func (wouldBlockError) Error() string   { return "no data has arrived yet" }
func (wouldBlockError) Timeout() bool   { return true }
func (wouldBlockError) Temporary() bool { return true }

const closedFD = -1

// detach removes the connection from Go's poller.
func (s *nonblockingConn) detach() error {
	conn, ok := s.Conn.(syscall.Conn)
	if !ok {
		return errors.New("the provider's connection is not a socket")
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("detaching the provider's socket: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { s.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("detaching the provider's socket: %w", err)
	}
	err = s.Conn.Close() // fd is a duplicate descriptor of the same connection
	s.Conn = nil
	return err
}

// Read implements net.Conn.
func (s *nonblockingConn) Read(b []byte) (int, error) {
	switch {
	case s.Conn != nil:
		return s.Conn.Read(b)
	case s.fd == closedFD:
		return 0, net.ErrClosed
	case s.drained:
		return 0, errWouldBlock
	}
	n, err := rawio.Read(s.fd, b)
	switch {
	case err == unix.EAGAIN:
		s.drained = true
		return 0, errWouldBlock
	case err != nil:
		return 0, err
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	s.drained = n < len(b)
	return n, nil
}

// Write implements net.Conn. It keeps bytes that the kernel does not accept for flush.
func (s *nonblockingConn) Write(b []byte) (int, error) {
	if s.Conn != nil {
		return s.Conn.Write(b)
	}
	if s.fd == closedFD {
		return 0, net.ErrClosed
	}
	if len(s.pending) > 0 {
		s.pending = append(s.pending, b...)
		return len(b), nil
	}
	n, err := rawio.Write(s.fd, b)
	if err != nil && err != unix.EAGAIN {
		return 0, err
	}
	s.pending = append(s.pending, b[n:]...)
	return len(b), nil
}

// flush writes kept bytes. wrote reports whether the kernel accepted any.
func (s *nonblockingConn) flush() (wrote bool, err error) {
	if len(s.pending) == 0 {
		return false, nil
	}
	n, err := rawio.Write(s.fd, s.pending)
	if err != nil {
		if err == unix.EAGAIN {
			err = nil
		}
		return false, err
	}
	s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	return true, nil
}

// SetWriteDeadline implements net.Conn. crypto/tls calls it before its close alert.
func (s *nonblockingConn) SetWriteDeadline(t time.Time) error {
	if s.Conn != nil {
		return s.Conn.SetWriteDeadline(t)
	}
	return nil
}

// Close implements net.Conn.
func (s *nonblockingConn) Close() error {
	if s.Conn != nil {
		return s.Conn.Close()
	}
	if s.fd == closedFD {
		return net.ErrClosed
	}
	fd := s.fd
	s.fd = closedFD
	return unix.Close(fd)
}
