package loadtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// readBytes is what one read takes from a socket at most.
const readBytes = 256 << 10

// worker reads many connections in one goroutine. Its buffers are those of the
// connection it is with.
type worker struct {
	epoll int
	wake  int                     // an eventfd: end
	lost  func(c *conn, code int) // told of a connection that ended, with mu held

	mu     sync.Mutex
	conns  map[int32]*conn // by slot
	r      receiver
	plain  []byte
	cipher []byte // TLS only
	ending bool
}

// wakeSlot stands for wake among the slots.
const wakeSlot = -1

func newWorker(r receiver, secure bool, lost func(*conn, int)) (w *worker, err error) {
	w = &worker{epoll: -1, wake: -1, lost: lost, conns: map[int32]*conn{}, r: r, plain: make([]byte, readBytes)}
	w.r.reply = w.reply
	if secure {
		w.cipher = make([]byte, readBytes)
	}
	defer func() {
		if err != nil {
			w.release()
		}
	}()
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making an epoll: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("making an eventfd: %w", err)
	}
	if err := w.watch(w.wake, unix.EPOLLIN, wakeSlot, 0); err != nil {
		return nil, fmt.Errorf("watching the eventfd: %w", err)
	}
	return w, nil
}

func (w *worker) watch(fd int, events uint32, slot, visit int32) error {
	return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: slot, Pad: visit})
}

// run reads until stop.
func (w *worker) run() error {
	events := make([]unix.EpollEvent, 256)
	for {
		n, err := unix.EpollWait(w.epoll, events, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for sockets: %w", err)
		}
		w.mu.Lock()
		for _, e := range events[:n] {
			if c := w.conns[e.Fd]; c != nil && c.open && c.visit == e.Pad {
				w.serve(c)
			}
		}
		ending := w.ending
		w.mu.Unlock()
		if ending {
			return nil
		}
	}
}

// adopt takes a connection over from its handshake.
func (w *worker) adopt(c *conn, o *opened) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending {
		_ = unix.Close(o.fd)
		return errors.New("ending")
	}
	c.visit++
	events := uint32(unix.EPOLLIN | unix.EPOLLRDHUP)
	if c.stalled {
		events = unix.EPOLLRDHUP
	}
	if err := w.watch(o.fd, events, int32(c.slot), c.visit); err != nil {
		_ = unix.Close(o.fd)
		return fmt.Errorf("watching a socket: %w", err)
	}
	if c.visit > 1 {
		c.resumed = true
		w.r.tally.Resumed++
	}
	c.open, c.fd, c.tls, c.wire, c.message = true, o.fd, o.tls, o.wire, nil
	c.partial = nil
	w.conns[int32(c.slot)] = c
	w.r.tally.Open++
	if c.stalled {
		return nil
	}
	err := w.frames(c, o.early)
	if err == nil && c.tls != nil {
		err = w.records(c) // the handshake may have read ahead
	}
	w.finish(c, err)
	return nil
}

// serve reads what a connection has.
func (w *worker) serve(c *conn) {
	if c.stalled { // only its end wakes us
		w.end(c, codeAbnormal)
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

// errNothing says that a socket has nothing to read.
var errNothing = errors.New("nothing to read")

// readSome reads once; io.EOF when nothing will ever come.
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

// records goes through all TLS records that are whole now.
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

// frames goes through bytes that begin with a frame, and keeps what is not
// whole.
func (w *worker) frames(c *conn, b []byte) error {
	rest, need, err := w.r.take(c, b)
	if err != nil {
		return err
	}
	c.keep(rest)
	if need >= len(w.plain) { // take refuses what is larger than maxFrame
		w.plain = make([]byte, need+readBytes)
	}
	return nil
}

// finish ends a connection that an error has ended.
func (w *worker) finish(c *conn, err error) {
	var closed *closing
	switch {
	case err == nil || err == errNothing:
	case errors.As(err, &closed):
		w.end(c, closed.code)
	case isProtocol(err):
		w.r.tally.Misbehaved++
		_ = w.reply(c, appendClose(nil, codeProtocol))
		w.end(c, codeProtocol)
	default:
		w.end(c, codeAbnormal)
	}
}

const codeProtocol = 1002

func isProtocol(err error) bool {
	return errors.Is(err, errReserved) || errors.Is(err, errMasked) || errors.Is(err, errControl) ||
		errors.Is(err, errTooLarge) || errors.Is(err, errOrder)
}

func (w *worker) reply(c *conn, frame []byte) error {
	if c.tls != nil {
		_, err := c.tls.Write(frame)
		return err
	}
	return writeAll(c.fd, frame)
}

func (w *worker) end(c *conn, code int) {
	w.drop(c)
	w.r.tally.ended(code)
	if c.stalled {
		w.r.tally.StalledEnd++
	}
	w.lost(c, code)
}

func (w *worker) drop(c *conn) {
	_ = unix.Close(c.fd) // which also ends the watch
	c.open, c.fd, c.tls, c.wire, c.partial, c.message = false, -1, nil, nil, nil, nil
	w.r.tally.Open--
}

// stop closes all connections and makes run return.
func (w *worker) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ending = true
	for _, c := range w.conns {
		if c.open {
			_ = w.reply(c, appendClose(nil, codeNormal)) // as a courtesy
			w.drop(c)
		}
	}
	_, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // only a full counter refuses, and wakes too
}

// release frees what is left after run.
func (w *worker) release() {
	for _, fd := range []int{w.epoll, w.wake} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}
