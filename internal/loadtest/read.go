package loadtest

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"trunkline/internal/wsframe"
)

// serve reads the available bytes of a connection.
func (w *worker) serve(c *conn) {
	if c.stalled { // woken only by the end of the connection
		w.end(c, wsframe.CodeAbnormal)
		return
	}
	if c.tls != nil {
		w.finish(c, w.readTLS(c))
		return
	}
	have := copy(w.plain, c.partial)
	n, err := readSome(c.fd, w.plain[have:])
	if err == nil {
		err = w.frames(c, w.plain[:have+n])
	}
	w.finish(c, err)
}

// errNothing is the error of a read from a socket without data.
var errNothing = errors.New("nothing to read")

// readSome reads once; io.EOF means that the connection has ended.
func readSome(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, errNothing
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

// readTLS reads once from the socket.
func (w *worker) readTLS(c *conn) error {
	n, err := readSome(c.fd, w.cipher)
	if err != nil && err != io.EOF {
		return err
	}
	c.wire.feed, c.wire.over = w.cipher[:n], err == io.EOF
	return w.records(c)
}

// records processes all complete TLS records.
func (w *worker) records(c *conn) error {
	for {
		have := copy(w.plain, c.partial)
		n, err := c.tls.Read(w.plain[have:])
		if ferr := w.frames(c, w.plain[:have+n]); ferr != nil {
			return ferr
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// frames processes the complete frames of bytes that begin with one, and stores the rest.
func (w *worker) frames(c *conn, b []byte) error {
	rest, need, err := w.r.take(c, b)
	if err != nil {
		return err
	}
	c.keep(rest)
	if need >= len(w.plain) { // take rejects frames larger than maxFrame
		w.plain = make([]byte, need+readBytes)
	}
	return nil
}
