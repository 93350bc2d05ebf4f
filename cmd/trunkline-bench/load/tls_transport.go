package load

import (
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// tlsTransport is the connection below crypto/tls. During the handshake it is the net.Conn; afterwards
// the reader feeds it the bytes that it has read, and Read returns a temporary error when they
// are used up. crypto/tls can continue after such an error, which makes TLS possible without a
// goroutine per connection.
type tlsTransport struct {
	conn   net.Conn // of the handshake; nil afterwards
	fd     int
	unread []byte
	eof    bool // unread has the last bytes of the connection
}

func (w *tlsTransport) Read(b []byte) (int, error) {
	switch {
	case w.conn != nil:
		return w.conn.Read(b)
	case len(w.unread) > 0:
		n := copy(b, w.unread)
		w.unread = w.unread[n:]
		return n, nil
	case w.eof:
		return 0, io.EOF
	default:
		return 0, os.ErrDeadlineExceeded // a net.Error that is temporary
	}
}

func (w *tlsTransport) Write(b []byte) (int, error) {
	if w.conn != nil {
		return w.conn.Write(b)
	}
	if err := writeAll(w.fd, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// writeAll writes to a non-blocking socket. Writes are small and rare: a full send buffer means
// that the server does not read.
func writeAll(fd int, b []byte) error {
	for {
		n, err := unix.Write(fd, b)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n < len(b):
			return unix.EAGAIN
		default:
			return nil
		}
	}
}

// The other methods of net.Conn.

func (w *tlsTransport) Close() error {
	if w.conn != nil {
		return w.conn.Close()
	}
	return nil // the reader closes the descriptor
}

func (w *tlsTransport) LocalAddr() net.Addr  { return w.conn.LocalAddr() }
func (w *tlsTransport) RemoteAddr() net.Addr { return w.conn.RemoteAddr() }

func (w *tlsTransport) SetDeadline(t time.Time) error      { return w.deadline(t) }
func (w *tlsTransport) SetReadDeadline(t time.Time) error  { return w.deadline(t) }
func (w *tlsTransport) SetWriteDeadline(t time.Time) error { return w.deadline(t) }

// deadline sets the deadline of the handshake; later reads and writes never block.
func (w *tlsTransport) deadline(t time.Time) error {
	if w.conn == nil {
		return nil
	}
	return w.conn.SetDeadline(t)
}
