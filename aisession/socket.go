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

// socket is a provider's TCP connection, with TLS above it or not. The
// handshakes use it as any other. take makes it the ticks' own: from then on
// reading and writing never wait, and Go's poller, which would wake a thread
// for each frame that comes, does not know of it. One goroutine at a time uses
// it.
type socket struct {
	net.Conn        // until take
	fd       int    // since take; closed: -1
	pending  []byte // written, and not taken by the kernel yet
	dry      bool   // the last read took all there was
}

// errWait is what reading answers when nothing has come. TLS goes on after an
// error that says it is a timeout.
var errWait error = wait{}

type wait struct{}

func (wait) Error() string   { return "nothing has come yet" }
func (wait) Timeout() bool   { return true }
func (wait) Temporary() bool { return true }

const closed = -1

// take takes the connection away from Go's poller.
func (s *socket) take() error {
	conn, ok := s.Conn.(syscall.Conn)
	if !ok {
		return errors.New("the provider's connection is no socket")
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return fmt.Errorf("taking the provider's socket: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { s.fd, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("taking the provider's socket: %w", err)
	}
	err = s.Conn.Close() // ours is another descriptor of the same connection
	s.Conn = nil
	return err
}

// Read implements net.Conn.
func (s *socket) Read(b []byte) (int, error) {
	switch {
	case s.Conn != nil:
		return s.Conn.Read(b)
	case s.fd == closed:
		return 0, net.ErrClosed
	case s.dry:
		return 0, errWait
	}
	n, err := rawio.Read(s.fd, b)
	switch {
	case err == unix.EAGAIN:
		s.dry = true
		return 0, errWait
	case err != nil:
		return 0, err
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	}
	s.dry = n < len(b)
	return n, nil
}

// Write implements net.Conn. What the kernel has no room for is kept for flush.
func (s *socket) Write(b []byte) (int, error) {
	if s.Conn != nil {
		return s.Conn.Write(b)
	}
	if s.fd == closed {
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

// flush writes what is kept; moved says that the kernel took some of it.
func (s *socket) flush() (moved bool, err error) {
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

// SetWriteDeadline implements net.Conn: TLS sets one for its farewell.
func (s *socket) SetWriteDeadline(t time.Time) error {
	if s.Conn != nil {
		return s.Conn.SetWriteDeadline(t)
	}
	return nil
}

// Close implements net.Conn.
func (s *socket) Close() error {
	if s.Conn != nil {
		return s.Conn.Close()
	}
	if s.fd == closed {
		return net.ErrClosed
	}
	fd := s.fd
	s.fd = closed
	return unix.Close(fd)
}
