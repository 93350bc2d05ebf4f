package loadtest

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"trunkline/internal/wsframe"
)

// readBytes is the largest read from a socket, in bytes.
const readBytes = 256 << 10

// worker reads many connections in one goroutine. All share its buffers.
type worker struct {
	poll *poller
	lost func(c *conn, code int) // called with mu held for a connection that has ended

	mu     sync.Mutex
	conns  map[int32]*conn // by slot
	r      receiver
	plain  []byte
	cipher []byte // TLS only
	ending bool
}

func newWorker(r receiver, secure bool, lost func(*conn, int)) (*worker, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}
	w := &worker{poll: poll, lost: lost, conns: map[int32]*conn{}, r: r, plain: make([]byte, readBytes)}
	w.r.reply = w.reply
	if secure {
		w.cipher = make([]byte, readBytes)
	}
	return w, nil
}

// run reads until stop.
func (w *worker) run() error {
	var sockets []ready
	for {
		var err error
		if sockets, err = w.poll.wait(sockets[:0]); err != nil {
			return err
		}
		w.mu.Lock()
		for _, at := range sockets {
			if c := w.conns[at.slot]; c != nil && c.open && c.visit == at.visit {
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

// adopt takes over a connection after its handshake.
func (w *worker) adopt(c *conn, o *opened) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ending {
		_ = unix.Close(o.fd)
		return errors.New("ending")
	}
	c.visit++
	if err := w.poll.watch(o.fd, !c.stalled, ready{int32(c.slot), c.visit}); err != nil {
		_ = unix.Close(o.fd)
		return fmt.Errorf("watching a socket: %w", err)
	}
	if c.visit > 1 {
		c.resume()
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

// finish closes a connection after an error.
func (w *worker) finish(c *conn, err error) {
	var closed *closing
	switch {
	case err == nil || err == errNothing:
	case errors.As(err, &closed):
		w.end(c, closed.code)
	case isProtocol(err):
		w.r.tally.Misbehaved++
		_ = w.reply(c, closeFrame(codeProtocol))
		w.end(c, codeProtocol)
	default:
		w.end(c, wsframe.CodeAbnormal)
	}
}

const codeProtocol = 1002

func isProtocol(err error) bool {
	return errors.Is(err, wsframe.ErrReserved) || errors.Is(err, wsframe.ErrMasked) || errors.Is(err, wsframe.ErrControl) ||
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
	_ = unix.Close(c.fd) // also removes it from the poller
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
			_ = w.reply(c, closeFrame(codeNormal)) // best effort
			w.drop(c)
		}
	}
	w.poll.wake()
}
