package aisession

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"trunkline/internal/aiprotocol"
)

const (
	readLimit    = 1 << 20                // bytes of a provider's message
	writeLimit   = 5 * time.Second        // a write that takes longer, or four fifths, ends the connection
	lingerLimit  = 2 * time.Second        // for a provider to answer our close
	agreeLimit   = 100 * time.Millisecond // to answer a provider's close
	hangLimit    = 10 * time.Second       // for TCP to hear anything of what we sent
	sendBuffer   = 64 << 10               // bytes in the kernel: what waits longer waits here, where it can be dropped
	readBuffer   = 4 << 10                // bytes
	fewBytes     = 16                     // gorilla writes nothing after the handshake
	keptMessage  = 64 << 10               // of memory from one message to the next
	closedNormal = websocket.CloseNormalClosure
)

// link is one connection to a provider: one session, as the provider sees it.
// gorilla/websocket makes the handshake and reads; every frame that goes out
// goes through the outbox, and one writer.
type link struct {
	ws   *websocket.Conn
	conn net.Conn
	out  *outbox
	born time.Time
	lost chan struct{} // closed when nothing can be said or heard any more
	read chan struct{} // closed when the reader has ended
	over atomic.Bool   // lost is closed

	mu      sync.Mutex
	parting bool  // we have said that we close
	err     error // why it is lost; nil when we closed it
}

// connect makes a connection and says start on it.
func (s *Session) connect(ctx context.Context) (*link, error) {
	cfg := s.service.cfg
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectTimeout)
	defer cancel()
	provider := s.request.Provider
	dialer := websocket.Dialer{
		NetDialContext:   s.service.deps.Providers.Guard(provider).DialContext,
		TLSClientConfig:  s.service.deps.Authorities,
		HandshakeTimeout: cfg.ConnectTimeout,
		ReadBufferSize:   readBuffer,
		WriteBufferSize:  fewBytes,
	}
	header := make(http.Header, len(provider.Headers))
	for name, value := range provider.Headers {
		header.Set(name, value)
	}
	ws, answer, err := dialer.DialContext(ctx, provider.URL, header)
	if err != nil {
		if answer != nil {
			return nil, &refusal{answer.StatusCode}
		}
		return nil, fmt.Errorf("connecting to the provider: %w", err)
	}
	l := &link{
		ws: ws, conn: ws.NetConn(), out: newOutbox(), born: time.Now(),
		lost: make(chan struct{}), read: make(chan struct{}),
	}
	tune(l.conn)
	ws.SetReadLimit(readLimit)
	ws.SetCloseHandler(func(int, string) error { l.agree(); return nil })
	l.text(func(b []byte) []byte { return aiprotocol.AppendStart(b, s.start()) })
	return l, nil
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
func (l *link) pong(data string) { l.send(opPong, []byte(data), false) }

// farewell queues the close frame: nothing goes out after it.
func (l *link) farewell() {
	l.mu.Lock()
	l.parting = true
	l.mu.Unlock()
	l.send(opClose, websocket.FormatCloseMessage(closedNormal, ""), true)
}

// agree answers a provider's close, which ends the connection at once: what is
// queued has nobody to hear it.
func (l *link) agree() {
	if l.out.end() {
		b := append(headerRoom(nil), websocket.FormatCloseMessage(closedNormal, "")...)
		from := seal(b, opClose)
		if l.conn.SetWriteDeadline(time.Now().Add(agreeLimit)) == nil {
			_, _ = l.conn.Write(b[from:]) // it has gone already when this fails
		}
	}
}

// write writes what is queued until the farewell is written or the link is
// lost.
func (l *link) write() {
	var allowed time.Time // when the deadline was set
	for {
		f, waiting := l.out.next()
		if !waiting {
			if l.over.Load() {
				return
			}
			<-l.out.wake // lose wakes too: one channel costs half as much as two
			continue
		}
		var err error
		if now := time.Now(); now.Sub(allowed) > writeLimit/5 { // it costs as much as making the frame
			allowed, err = now, l.conn.SetWriteDeadline(now.Add(writeLimit))
		}
		if err == nil {
			_, err = l.conn.Write(f.bytes())
		}
		switch {
		case err != nil:
			l.lose(fmt.Errorf("writing to the provider: %w", err))
			return
		case f.last:
			l.linger()
			return
		}
		l.out.done(f)
	}
}

// linger waits a little for the provider's close, so that what we wrote is not
// lost to a reset.
func (l *link) linger() {
	timer := time.NewTimer(lingerLimit)
	defer timer.Stop()
	select {
	case <-l.read:
	case <-timer.C:
	}
	l.lose(nil)
}

// listen reads messages until the link is lost. message is the reader's memory.
func (l *link) listen(heard func(message []byte), binary func()) {
	defer close(l.read)
	var message []byte
	for {
		kind, r, err := l.ws.NextReader()
		if err == nil && kind == websocket.BinaryMessage {
			binary()
			continue // the next one skips what is left of this one
		}
		if err == nil {
			message, err = readInto(message[:0], r)
		}
		if err != nil {
			l.lose(err)
			return
		}
		heard(message)
		if cap(message) > keptMessage {
			message = nil
		}
	}
}

func readInto(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}

// lose ends the connection. The first reason counts.
func (l *link) lose(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.lost:
		return
	default:
	}
	if !l.parting {
		l.err = err
	}
	close(l.lost)
	l.over.Store(true)
	l.out.poke()
	_ = l.conn.Close()
}

func (l *link) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
