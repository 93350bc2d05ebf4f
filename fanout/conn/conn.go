package conn

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"trunkline/internal/rawio"
)

// NewListener wraps a TCP listener so that writes to its connections can be
// non-blocking. It goes below TLS. Without it, one full socket would block a writer
// and thereby every other client of that writer.
func NewListener(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newRawConn(c)
}

// rawConn is a TCP connection. Write blocks as that of any net.Conn until spill is
// set; then it appends to pending what does not fit in the socket buffer, and returns.
type rawConn struct {
	net.Conn
	raw syscall.RawConn // to wait until the socket is writable; non-blocking calls use fd

	mu      sync.Mutex
	fd      int    // -1: closed. Used with mu held only: the kernel may reuse the number of a closed one
	spill   bool   // Write never blocks
	pending []byte // bytes that did not fit, in spill mode
}

func newRawConn(c net.Conn) (*rawConn, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, errors.New("connection without a file descriptor")
	}

	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}

	s := &rawConn{Conn: c, raw: raw}
	if err := raw.Control(func(fd uintptr) { s.fd = int(fd) }); err != nil {
		return nil, err
	}

	return s, nil
}

// Close closes the connection; a waiting awaitWritable returns an error.
func (s *rawConn) Close() error {
	s.mu.Lock()
	// First, so that tryWrite cannot use the number once the kernel may have given it to another file.
	s.fd = -1
	s.mu.Unlock()
	return s.Conn.Close()
}

// tryWrite writes as much as fits in the socket buffer. The caller holds mu.
func (s *rawConn) tryWrite(b []byte) (int, error) {
	if s.fd < 0 {
		return 0, net.ErrClosed
	}
	n, err := rawio.Write(s.fd, b)
	if err == syscall.EAGAIN {
		err = nil
	}
	return n, err
}

// awaitWritable calls attempt, with mu held, now and whenever the socket is
// writable, until it returns true.
func (s *rawConn) awaitWritable(attempt func() bool) error {
	return s.raw.Write(func(uintptr) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return attempt()
	})
}

// Write in spill mode accepts all of b: bytes that do not fit in the socket buffer are
// kept and flushed before any others. TLS needs this because a record that was started
// must be completed.
func (s *rawConn) Write(b []byte) (int, error) {
	s.mu.Lock()
	if !s.spill {
		s.mu.Unlock()
		return s.Conn.Write(b)
	}
	defer s.mu.Unlock()

	n := 0
	// While bytes are pending, later ones must wait behind them.
	if len(s.pending) == 0 {
		var err error
		n, err = s.tryWrite(b)
		if err != nil {
			return n, err
		}
	}

	s.pending = append(s.pending, b[n:]...)
	return len(b), nil
}

// Conn is a plain or TLS connection with non-blocking writes. Only one goroutine at a
// time may write.
type Conn struct {
	socket *rawConn
	tls    *tls.Conn // nil: plain
}

// ErrListener is returned for a connection that no listener of NewListener
// accepted.
var ErrListener = errors.New("connection was not accepted by the listener of package conn")

// New takes over a connection that a listener of NewListener accepted, or a TLS
// connection on top of one. The caller must not write to it any more.
func New(accepted net.Conn) (*Conn, error) {
	c := &Conn{}
	if t, ok := accepted.(*tls.Conn); ok {
		c.tls = t
		accepted = t.NetConn()
	}

	s, ok := accepted.(*rawConn)
	if !ok {
		return nil, ErrListener
	}

	s.mu.Lock()
	s.spill = true
	s.mu.Unlock()

	c.socket = s
	return c, nil
}

// Send writes b without blocking. It returns the number of bytes of b that must not be
// sent again; full reports that the socket buffer is full.
func (c *Conn) Send(b []byte) (n int, full bool, err error) {
	s := c.socket
	if c.tls == nil {
		s.mu.Lock()
		n, err = s.tryWrite(b)
		s.mu.Unlock()
		return n, n < len(b), err
	}

	n, err = c.tls.Write(b)
	if err != nil {
		return n, false, err
	}

	s.mu.Lock()
	full = len(s.pending) > 0
	s.mu.Unlock()

	return n, full, nil
}

// Wait blocks until the socket has accepted some bytes: of the TLS records that did
// not fit, or else of b. It returns how many bytes of b must not be sent again.
func (c *Conn) Wait(b []byte) (n int, err error) {
	s := c.socket
	waiting := s.awaitWritable(func() bool {
		if c.tls == nil {
			n, err = s.tryWrite(b)
			return n > 0 || err != nil
		}

		taken := 0
		taken, err = s.tryWrite(s.pending)
		if taken == len(s.pending) {
			s.pending = nil
			return true
		}

		s.pending = s.pending[:copy(s.pending, s.pending[taken:])]
		return taken > 0 || err != nil
	})

	return n, errors.Join(err, waiting)
}

// Spilled returns the bytes of memory held by TLS records that did not fit in the
// socket buffer.
func (c *Conn) Spilled() int {
	if c.tls == nil {
		return 0
	}
	c.socket.mu.Lock()
	defer c.socket.mu.Unlock()
	return cap(c.socket.pending)
}

// Discard reads and discards input until the connection ends, so that a TCP
// reset does not drop data in transit to the peer.
func (c *Conn) Discard() { _, _ = io.Copy(io.Discard, c.socket.Conn) }

// Close ends the connection and every Wait.
func (c *Conn) Close() error { return c.socket.Close() }
