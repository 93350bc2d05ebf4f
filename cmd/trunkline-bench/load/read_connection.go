package load

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"trunkline/internal/wsframe"
)

// readSubscriber reads the available bytes of a connection.
func (w *socketReader) readSubscriber(c *subscriber) {
	if c.stalled { // woken only by the end of the connection
		w.endConn(c, wsframe.CodeAbnormal)
		return
	}
	if c.tls != nil {
		w.handleResult(c, w.readTLS(c))
		return
	}

	// The beginning of a frame goes before what is read, because the buffer was another connection's meanwhile.
	have := copy(w.plaintext, c.partial)
	n, err := readSome(c.fd, w.plaintext[have:])
	if err == nil {
		err = w.handleFrames(c, w.plaintext[:have+n])
	}

	w.handleResult(c, err)
}

// errNoData is the error of a read from a socket without data.
var errNoData = errors.New("nothing to read")

// readSome reads once; io.EOF means that the connection has ended.
func readSome(fd int, b []byte) (int, error) {
	for {
		n, err := unix.Read(fd, b)
		switch {
		case err == unix.EINTR:
		case err == unix.EAGAIN:
			return 0, errNoData
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
func (w *socketReader) readTLS(c *subscriber) error {
	n, err := readSome(c.fd, w.ciphertext)
	if err != nil && err != io.EOF {
		return err
	}
	c.transport.unread, c.transport.eof = w.ciphertext[:n], err == io.EOF
	return w.readRecords(c)
}

// readRecords processes all complete TLS records.
func (w *socketReader) readRecords(c *subscriber) error {
	for {
		have := copy(w.plaintext, c.partial)
		n, err := c.tls.Read(w.plaintext[have:])
		ferr := w.handleFrames(c, w.plaintext[:have+n])
		if ferr != nil {
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

// handleFrames processes the complete frames at the start of b, and stores the rest.
func (w *socketReader) handleFrames(c *subscriber, b []byte) error {
	rest, need, err := w.receiver.receive(c, b)
	if err != nil {
		return err
	}
	c.keepPartial(rest)
	if need >= len(w.plaintext) { // receive rejects frames larger than maxFrameBytes
		w.plaintext = make([]byte, need+readBytes)
	}
	return nil
}
