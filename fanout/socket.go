package fanout

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/event"
)

// socketOutlet carries frames over a WebSocket. gorilla/websocket makes the
// handshake and reads; after the handshake every byte that goes out goes
// through line, and gorilla writes nothing.
type socketOutlet struct {
	f          *Fanout
	ws         *websocket.Conn
	handing    sync.Mutex // of line, until the handshake is over
	line       *line
	isShut     bool
	compress   atomic.Bool // the peer takes compressed messages; a message before it is known goes as it is
	peerClosed atomic.Bool // the peer has said its farewell
}

func (o *socketOutlet) event(m *frame, _ *cursorTracker) *frame {
	if m.packed != nil && o.compress.Load() {
		return m.packed.of(m)
	}
	return m
}

func (o *socketOutlet) farewell(code int, reason string) *frame { return closeFrame(code, reason) }

func (o *socketOutlet) cursor(cursor string) *frame {
	payload := append(event.AppendString([]byte(`{"cursor":`), cursor), '}')
	return controlFrame(opText, payload)
}

var pingFrame = controlFrame(opPing, nil)

func (o *socketOutlet) ping() *frame { return pingFrame }

func (o *socketOutlet) answers() bool { return true }

func (o *socketOutlet) stuck(s *subscriber) bool { return s.state == blocked }

// shut may come while the handshake is still under way: adopt then closes.
func (o *socketOutlet) shut() {
	o.handing.Lock()
	defer o.handing.Unlock()
	o.isShut = true
	if o.line != nil {
		_ = o.line.close()
	}
}

// adopt takes the connection after the handshake; it is closed at once when the
// subscriber has been shut meanwhile.
func (o *socketOutlet) adopt(l *line) {
	o.handing.Lock()
	defer o.handing.Unlock()
	o.line = l
	if o.isShut {
		_ = l.close()
	}
}

// flush sends what waits until nothing waits, or the socket is full.
func (o *socketOutlet) flush(s *subscriber, scratch []byte) {
	s.mu.Lock()
	for s.state != closed {
		s.conclude()
		if s.queue.empty() {
			s.state = idle
			said := s.end != nil
			s.mu.Unlock()
			if said {
				o.said(s)
			}
			return
		}
		waiting := s.queue.gather(scratch, writeBytes)
		s.mu.Unlock()

		n, full, err := o.line.send(waiting)

		s.mu.Lock()
		if s.state == closed {
			break
		}
		s.advanced(n)
		if !full && err == nil {
			continue
		}
		if full {
			s.state = blocked
			s.queue.spilled(o.line.spilled())
			s.freeRoom()
		}
		s.mu.Unlock()
		if err != nil || !o.f.begin(func() { o.wait(s) }) {
			o.f.remove(s, codeAbnormal)
		}
		return
	}
	s.mu.Unlock()
}

// wait parks until the socket has room again. Only subscribers whose socket is
// full have a goroutine for writing.
func (o *socketOutlet) wait(s *subscriber) {
	s.mu.Lock()
	if s.state == closed {
		s.mu.Unlock()
		return
	}
	var rest []byte
	if !s.queue.empty() {
		rest = s.queue.rest()
	}
	s.mu.Unlock()

	n, err := o.line.wait(rest)

	s.mu.Lock()
	if s.state == closed {
		s.mu.Unlock()
		return
	}
	s.queue.spilled(o.line.spilled())
	s.advanced(n)
	s.state = scheduled
	s.mu.Unlock()
	if err != nil {
		o.f.remove(s, codeAbnormal)
		return
	}
	o.f.writers.now(o.f.life, s)
}

// said notes that the farewell is out. A peer that has said its own is done;
// any other has a moment to answer.
func (o *socketOutlet) said(s *subscriber) {
	if o.peerClosed.Load() {
		o.f.remove(s, codeNormal)
		return
	}
	s.mu.Lock()
	if by := time.Now().Add(lastDrain); by.Before(s.end.by) {
		s.end.by = by
	}
	s.mu.Unlock()
}

// A peer may send this much that is not a control frame within a window;
// beyond, it is not a client of this channel.
const (
	chatterFrames = 10
	chatterBytes  = 16 << 10
	chatterWindow = 10 * time.Second
)

// read serves the peer's side until the connection ends.
func (o *socketOutlet) read(s *subscriber) {
	o.ws.SetPongHandler(func(string) error {
		now := time.Now().Unix()
		s.lastPong.Store(now)
		s.heard.Store(now)
		return nil
	})
	o.ws.SetPingHandler(func(data string) error {
		s.heard.Store(time.Now().Unix())
		o.push(s, controlFrame(opPong, []byte(data)))
		return nil
	})
	o.ws.SetCloseHandler(func(int, string) error { return nil })
	var (
		since         time.Time
		frames, bytes int
	)
	for {
		_, r, err := o.ws.NextReader()
		if err != nil {
			o.over(s, err)
			return
		}
		now := time.Now()
		s.heard.Store(now.Unix())
		if now.Sub(since) > chatterWindow {
			since, frames, bytes = now, 0, 0
		}
		frames++
		n, err := io.Copy(io.Discard, io.LimitReader(r, chatterBytes+1))
		bytes += int(n)
		if err == nil && (frames > chatterFrames || bytes > chatterBytes) {
			o.f.send(s, codeMisuse, "this channel takes no messages")
		}
	}
}

// over ends a subscriber whose peer has closed, broken or misused the
// connection.
func (o *socketOutlet) over(s *subscriber, err error) {
	var closing *websocket.CloseError
	switch {
	case errors.As(err, &closing) && closing.Code != websocket.CloseAbnormalClosure:
		o.peerClosed.Store(true)
		if !s.gone() { // the peer closes first: its code is the answer, RFC 6455 5.5.1
			code := closing.Code
			if code == websocket.CloseNoStatusReceived {
				code = codeNormal
			}
			o.f.send(s, code, "")
			o.drain()
		}
		o.f.remove(s, codeNormal)
	case broken(err):
		o.f.remove(s, codeAbnormal)
	default:
		o.f.send(s, codeMisuse, "protocol error")
		o.drain()
		o.f.remove(s, codeMisuse)
	}
}

// broken says that a connection ended without a farewell, and not for what the
// peer said on it.
func broken(err error) bool {
	var network net.Error
	var closing *websocket.CloseError
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.As(err, &network) || errors.As(err, &closing)
}

// drain reads and forgets, so that what is still on its way to the peer is not
// lost to a reset. Somebody else ends it: said, or the sweeper.
func (o *socketOutlet) drain() { _, _ = io.Copy(io.Discard, o.line.socket.Conn) }

func (o *socketOutlet) push(s *subscriber, m *frame) {
	if s.pushControl(m) == pushWakes {
		o.f.writers.now(o.f.life, s)
	}
}
