package aisession

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

const (
	readLimit    = 1 << 20          // bytes of a provider's message
	writeLimit   = 5 * time.Second  // for the provider to take anything of what waits
	lingerLimit  = 2 * time.Second  // for a provider to answer our close
	hangLimit    = 10 * time.Second // for TCP to hear anything of what we sent
	sendBuffer   = 64 << 10         // bytes in the kernel: what waits longer waits here, where it can be dropped
	readBuffer   = 16 << 10         // bytes, of a wheel
	readATick    = 64 << 10         // bytes of a provider's, 40 times as much as the richest format needs
	recordsATick = 256              // of TLS, however small
	fewBytes     = 16               // gorilla neither writes nor reads after the handshake
	keptMessage  = 64 << 10         // of memory from one message to the next
	closedNormal = websocket.CloseNormalClosure
)

// link is one connection to a provider: one session, as the provider sees it.
// What is to be said waits in the outbox; the session's ticks write it, and read.
type link struct {
	conn net.Conn // TLS, or sock itself
	sock *socket
	out  *outbox
	in   messages
	hear *reader
	born time.Time
	lost chan struct{} // closed when nothing can be said or heard any more

	// What follows is the ticks' own.
	early []byte    // came with the answer to the handshake
	stuck time.Time // since when the kernel takes nothing; zero: it does
	leave time.Time // when to wait no more for the provider's close; zero: ours is not out
	over  bool      // lost is closed

	mu      sync.Mutex
	parting bool  // we have said that we close
	err     error // why it is lost; nil when we closed it
}

// connect makes a connection and says start on it.
func (s *Session) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.service.cfg.ConnectTimeout)
	defer cancel()
	conn, sock, early, err := s.handshake(ctx)
	if err != nil {
		return nil, err
	}
	l := newLink(s, conn, sock)
	l.text(func(b []byte) []byte { return aiprotocol.AppendStart(b, s.start()) })
	l.write(l.born)
	l.early = early
	return l, nil
}

func newLink(s *Session, conn net.Conn, sock *socket) *link {
	l := &link{conn: conn, sock: sock, out: newOutbox(), born: time.Now(), lost: make(chan struct{})}
	l.hear = newReader(s, l)
	return l
}

// text queues a message that is no audio, and says whether it had room.
func (l *link) text(appendTo func([]byte) []byte) bool {
	b := appendTo(headerRoom(l.out.begin()))
	return l.out.put(frame{memory: b, from: seal(b, opText)}) == 0
}

// audio queues a media message and says how many frames of audio had to go.
func (l *link) audio(payload []byte) (dropped int) {
	b := aiprotocol.AppendMedia(headerRoom(l.out.begin()), payload)
	return l.out.put(frame{memory: b, from: seal(b, opText), audio: true})
}

func (l *link) send(opcode byte, payload []byte, last bool) {
	b := append(headerRoom(l.out.begin()), payload...)
	l.out.put(frame{memory: b, from: seal(b, opcode), last: last})
}

// pong answers a ping.
func (l *link) pong(data []byte) { l.send(opPong, data, false) }

// sendClose queues the close frame: nothing goes out after it.
func (l *link) sendClose() {
	l.mu.Lock()
	l.parting = true
	l.mu.Unlock()
	l.send(opClose, websocket.FormatCloseMessage(closedNormal, ""), true)
}

// read reads what the provider has sent since the last tick. buffer is for that
// alone.
func (l *link) read(buffer []byte, now time.Time) {
	l.sock.dry = false
	if early := l.early; len(early) > 0 {
		l.early = nil
		l.handleBytes(early, now)
	}
	for bytes, records := 0, 0; bytes < readATick && records < recordsATick; records++ {
		if l.over || l.hear.flood.blocked(now) {
			return
		}
		n, err := l.conn.Read(buffer)
		if n > 0 {
			l.handleBytes(buffer[:n], now)
			bytes += n
		}
		switch {
		case err == nil:
		case errors.Is(err, errWait):
			return
		default:
			l.fail(fmt.Errorf("reading from the provider: %w", err))
			return
		}
	}
}

// handleBytes hears what came.
func (l *link) handleBytes(b []byte, now time.Time) {
	l.hear.now = now
	err := l.in.take(b, l.hear)
	if err == nil {
		return
	}
	var gone *websocket.CloseError
	switch {
	case errors.As(err, &gone):
		l.sendCloseCode(websocket.CloseNormalClosure)
		l.write(now) // our own farewell, if it waits
	case errors.Is(err, websocket.ErrReadLimit):
		l.sendCloseCode(websocket.CloseMessageTooBig)
	default:
		l.sendCloseCode(websocket.CloseProtocolError)
	}
	l.fail(err)
}

// sendCloseCode closes at once, if we have not: what is queued has nobody to hear
// it.
func (l *link) sendCloseCode(code int) {
	if l.out.end() {
		b := append(headerRoom(nil), websocket.FormatCloseMessage(code, "")...)
		from := seal(b, opClose)
		_, _ = l.conn.Write(b[from:]) // the provider may have gone already
	}
}

// write writes what is queued, as much as the kernel takes without waiting.
func (l *link) write(now time.Time) {
	if l.over {
		return
	}
	moved, err := l.sock.flush()
	for err == nil && len(l.sock.pending) == 0 {
		f, waiting := l.out.next()
		if !waiting {
			break
		}
		_, err = l.conn.Write(f.bytes())
		moved = true
		if f.last {
			l.leave = now.Add(lingerLimit)
		}
		l.out.done(f)
	}
	switch {
	case err != nil:
		l.fail(fmt.Errorf("writing to the provider: %w", err))
	case len(l.sock.pending) == 0:
		l.stuck = time.Time{}
	case moved || l.stuck.IsZero():
		l.stuck = now
	case now.Sub(l.stuck) > writeLimit:
		l.fail(errors.New("the provider takes nothing"))
	}
	if !l.leave.IsZero() && now.After(l.leave) {
		l.fail(nil) // it does not answer our close
	}
}

// fail ends the connection. The first reason counts.
func (l *link) fail(err error) {
	if l.over {
		return
	}
	l.over = true
	l.mu.Lock()
	if !l.parting {
		l.err = err
	}
	l.mu.Unlock()
	_ = l.conn.Close()
	close(l.lost)
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
