package fanout

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"syscall"

	"trunkline/internal/rawio"
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
	raw syscall.RawConn // to wait for room; what needs no waiting goes to fd

	mu      sync.Mutex
	fd      int    // -1: closed. Whoever uses it holds mu: its number may be another's a moment later
	spill   bool   // Write never waits
	pending []byte // what did not fit, in spill mode
}

func newSocket(c net.Conn) (*socket, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, errors.New("fanout: connection without a file descriptor")
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: c, raw: raw}
	if err := raw.Control(func(fd uintptr) { s.fd = int(fd) }); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the connection; whoever waits for room learns it.
func (s *socket) Close() error {
	s.mu.Lock()
	s.fd = -1
	s.mu.Unlock()
	return s.Conn.Close()
}

// try writes what the socket has room for, with mu held.
func (s *socket) try(b []byte) (int, error) {
	if s.fd < 0 {
		return 0, net.ErrClosed
	}
	n, err := rawio.Write(s.fd, b)
	if err == syscall.EAGAIN {
		err = nil
	}
	return n, err
}

// await calls attempt, with mu held, now and whenever there is room again,
// until it is true.
func (s *socket) await(attempt func() bool) error {
	return s.raw.Write(func(uintptr) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return attempt()
	})
}

// Write in spill mode takes all of b: what the socket has no room for is kept,
// and flushed before anything else. TLS needs this: a record that has begun
// must be finished.
func (s *socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	if !s.spill {
		s.mu.Unlock()
		return s.Conn.Write(b)
	}
	defer s.mu.Unlock()
	n := 0
	if len(s.pending) == 0 {
		var err error
		if n, err = s.try(b); err != nil {
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
	}
	s, ok := c.(*socket)
	if !ok {
		return nil, errListener
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
	s := l.socket
	if l.tls == nil {
		s.mu.Lock()
		n, err = s.try(b)
		s.mu.Unlock()
		return n, n < len(b), err
	}
	if n, err = l.tls.Write(b); err != nil {
		return n, false, err
	}
	s.mu.Lock()
	full = len(s.pending) > 0
	s.mu.Unlock()
	return n, full, nil
}

// wait waits until the socket has taken something: of the TLS records that
// did not fit, else of b.
func (l *line) wait(b []byte) (n int, err error) {
	s := l.socket
	waiting := s.await(func() bool {
		if l.tls == nil {
			n, err = s.try(b)
			return n > 0 || err != nil
		}
		taken := 0
		if taken, err = s.try(s.pending); taken == len(s.pending) {
			s.pending = nil
			return true
		}
		s.pending = s.pending[:copy(s.pending, s.pending[taken:])]
		return taken > 0 || err != nil
	})
	return n, errors.Join(err, waiting)
}

// spilled is how many bytes of memory hold TLS records that did not fit.
func (l *line) spilled() int {
	if l.tls == nil {
		return 0
	}
	l.socket.mu.Lock()
	defer l.socket.mu.Unlock()
	return cap(l.socket.pending)
}

func (l *line) close() error { return l.socket.Close() }
