package load

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"

	"trunkline/internal/wsframe"
)

// readBytes is the largest read from a socket, in bytes.
const readBytes = 256 << 10

// socketReader reads many connections in one goroutine. All share its buffers.
type socketReader struct {
	poll  *poller
	onEnd func(c *subscriber, code int) // called with mu held for a connection that has ended

	mu         sync.Mutex
	bySlot     map[int32]*subscriber
	receiver   receiver
	plaintext  []byte
	ciphertext []byte // TLS only
	stopping   bool
}

func newSocketReader(r receiver, secure bool, onEnd func(*subscriber, int)) (*socketReader, error) {
	poll, err := newPoller()
	if err != nil {
		return nil, err
	}

	w := &socketReader{poll: poll, onEnd: onEnd, bySlot: map[int32]*subscriber{}, receiver: r,
		plaintext: make([]byte, readBytes)}
	w.receiver.reply = w.reply
	if secure {
		w.ciphertext = make([]byte, readBytes)
	}

	return w, nil
}

// run reads until stop.
func (w *socketReader) run() error {
	var sockets []socketID
	for {
		var err error
		sockets, err = w.poll.wait(sockets[:0])
		if err != nil {
			return err
		}

		w.mu.Lock()
		for _, socket := range sockets {
			c := w.bySlot[socket.slot]
			if c != nil && c.open && c.connects == socket.connects {
				w.readSubscriber(c)
			}
		}

		ending := w.stopping
		w.mu.Unlock()

		if ending {
			return nil
		}
	}
}

// adopt takes over a connection after its handshake.
func (w *socketReader) adopt(c *subscriber, o *establishedConn) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.stopping {
		_ = unix.Close(o.fd)
		return errors.New("ending")
	}

	c.connects++
	if err := w.poll.watch(o.fd, !c.stalled, socketID{int32(c.slot), c.connects}); err != nil {
		_ = unix.Close(o.fd)
		return fmt.Errorf("watching a socket: %w", err)
	}
	if c.connects > 1 {
		c.resetToCursor()
		w.receiver.tally.Resumed++
	}

	c.open, c.fd, c.tls, c.transport, c.message = true, o.fd, o.tls, o.transport, nil
	c.partial = nil
	w.bySlot[int32(c.slot)] = c
	w.receiver.tally.Open++

	if c.stalled {
		return nil
	}

	err := w.handleFrames(c, o.bufferedBytes)
	if err == nil && c.tls != nil {
		err = w.readRecords(c) // the handshake may have read ahead
	}

	w.handleResult(c, err)
	return nil
}

// handleResult closes the connection if reading it returned an error other than errNoData.
func (w *socketReader) handleResult(c *subscriber, err error) {
	var closed *closedByServer
	switch {
	case err == nil || err == errNoData:
	case errors.As(err, &closed):
		w.endConn(c, closed.code)
	case isProtocolError(err):
		w.receiver.tally.Misbehaved++
		_ = w.reply(c, closeFrame(codeProtocol))
		w.endConn(c, codeProtocol)
	default:
		w.endConn(c, wsframe.CodeAbnormal)
	}
}

const codeProtocol = 1002

func isProtocolError(err error) bool {
	return errors.Is(err, wsframe.ErrReserved) || errors.Is(err, wsframe.ErrMasked) ||
		errors.Is(err, wsframe.ErrControl) ||
		errors.Is(err, errTooLarge) || errors.Is(err, errOrder)
}

func (w *socketReader) reply(c *subscriber, frame []byte) error {
	if c.tls != nil {
		_, err := c.tls.Write(frame)
		return err
	}
	return writeAll(c.fd, frame)
}

func (w *socketReader) endConn(c *subscriber, code int) {
	w.closeConn(c)
	w.receiver.tally.countClosed(code)
	if c.stalled {
		w.receiver.tally.StalledEnd++
	}
	w.onEnd(c, code)
}

func (w *socketReader) closeConn(c *subscriber) {
	_ = unix.Close(c.fd) // also removes it from the poller
	c.open, c.fd, c.tls, c.transport, c.partial, c.message = false, -1, nil, nil, nil, nil
	w.receiver.tally.Open--
}

// stop closes all connections and makes run return.
func (w *socketReader) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.stopping = true
	for _, c := range w.bySlot {
		if c.open {
			_ = w.reply(c, closeFrame(codeNormal)) // best effort
			w.closeConn(c)
		}
	}

	w.poll.wake()
}
