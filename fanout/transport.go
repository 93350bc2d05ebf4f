package fanout

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"
)

// Listener wraps a TCP listener so that the connections it accepts can later be
// written without waiting. It goes below TLS: without it, a full socket would
// hold a writer, and with it all the others it serves.
func Listener(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newSocket(c)
}

// socket is a TCP connection that can be told to take what fits and keep the
// rest instead of waiting. Until then it is an ordinary net.Conn.
type socket struct {
	net.Conn
	raw syscall.RawConn

	mu      sync.Mutex
	spill   bool   // Write never waits
	pending []byte // what did not fit, in spill mode

	// Arguments and results of the write that is under way, so that attempt is
	// one function value for all writes.
	buf     []byte
	n       int
	err     error
	waiting bool
	attempt func(fd uintptr) bool
}

func newSocket(c net.Conn) (*socket, error) {
	if s, ok := c.(*socket); ok {
		return s, nil
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, errors.New("fanout: connection without a file descriptor")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: c, raw: raw}
	s.attempt = s.write
	return s, nil
}

// write makes one attempt at the socket; it asks to be called again when the
// socket is full and the caller wants to wait.
func (s *socket) write(fd uintptr) bool {
	for {
		s.n, s.err = syscall.Write(int(fd), s.buf)
		switch s.err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			s.n, s.err = 0, nil
			return !s.waiting
		}
		s.n = max(s.n, 0)
		return true
	}
}

func (s *socket) try(b []byte, wait bool) (int, error) {
	s.buf, s.waiting = b, wait
	err := s.raw.Write(s.attempt)
	s.buf = nil
	if err == nil {
		err = s.err
	}
	return s.n, err
}

// Write in spill mode takes all of b: what the socket has no room for is kept,
// and flushed before anything else. TLS needs this: a record that has begun
// must be finished.
func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.spill {
		return s.Conn.Write(b)
	}
	n := 0
	if len(s.pending) == 0 {
		var err error
		if n, err = s.try(b, false); err != nil {
			return n, err
		}
	}
	s.pending = append(s.pending, b[n:]...)
	return len(b), nil
}

// line is one subscriber's way out: plain or TLS, never waiting unless asked
// to. One goroutine at a time may use it.
type line struct {
	socket *socket
	tls    *tls.Conn // nil: plain
}

// errListener tells the operator of a wiring fault, not a client of its own.
var errListener = errors.New("fanout: connection did not come through fanout.Listener")

// newLine takes a hijacked connection over. From here on nobody else writes to
// it.
func newLine(c net.Conn) (*line, error) {
	l := &line{}
	if t, ok := c.(*tls.Conn); ok {
		l.tls = t
		c = t.NetConn()
		if _, ok := c.(*socket); !ok {
			return nil, errListener
		}
	}
	s, err := newSocket(c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.spill = true
	s.mu.Unlock()
	l.socket = s
	return l, nil
}

// send gives b to the connection without waiting. It returns how much of b
// needs no second sending; full says that the socket takes no more for now.
func (l *line) send(b []byte) (n int, full bool, err error) {
	if l.tls == nil {
		l.socket.mu.Lock()
		defer l.socket.mu.Unlock()
		n, err = l.socket.try(b, false)
		return n, n < len(b), err
	}
	if n, err = l.tls.Write(b); err != nil {
		return n, false, err
	}
	return n, l.behind(), nil
}

func (l *line) behind() bool {
	l.socket.mu.Lock()
	defer l.socket.mu.Unlock()
	return len(l.socket.pending) > 0
}

// wait waits until the socket has taken something: of the TLS records that
// did not fit, else of b.
func (l *line) wait(b []byte) (n int, err error) {
	s := l.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) == 0 {
		if l.tls != nil {
			return 0, nil
		}
		return s.try(b, true)
	}
	n, err = s.try(s.pending, true)
	s.pending = s.pending[:copy(s.pending, s.pending[n:])]
	if len(s.pending) == 0 {
		s.pending = nil
	}
	return 0, err
}

func (l *line) close() error { return l.socket.Conn.Close() }
