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
	"trunkline/internal/wsframe"
)

const (
	readLimit       = 1 << 20          // bytes of one message from a provider
	writeTimeout    = 5 * time.Second  // how long the provider may read nothing while data waits
	closeTimeout    = 2 * time.Second  // how long to wait for the provider's close frame
	ackTimeout      = 10 * time.Second // how long TCP waits for an acknowledgement
	sendBuffer      = 64 << 10         // bytes of the kernel's buffer; further data waits in the outbox, where it can be dropped
	readBuffer      = 16 << 10         // bytes, per wheel
	maxTickBytes    = 64 << 10         // bytes read from a provider per tick, 40 times the rate of the largest format
	maxTickRecords  = 256              // TLS records read per tick, however small
	handshakeBuffer = 16               // gorilla's buffers are not used after the handshake
	maxKeptMessage  = 64 << 10         // bytes of memory kept between messages
	closedNormal    = websocket.CloseNormalClosure
)

// link is one connection to a provider, which the provider sees as one session. Outgoing messages wait
// in the outbox; the session's ticks write them and read the provider's messages.
type link struct {
	conn        net.Conn // TLS connection, or sock itself
	sock        *nonblockingConn
	outbox      *outbox
	assembler   messageAssembler
	reader      *providerReader
	connectedAt time.Time
	lost        chan struct{} // closed when the connection is unusable

	// The following fields are used by the ticks only.
	earlyBytes    []byte    // bytes that arrived with the handshake response
	blockedSince  time.Time // when the kernel stopped accepting data; zero while it does
	closeDeadline time.Time // deadline for the provider's close frame; zero before ours is sent
	closed        bool      // lost is closed

	mu      sync.Mutex
	closing bool  // our close frame was queued
	err     error // reason of the loss; nil if we closed
}

// connect opens a connection and sends the start message.
func (s *Session) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, s.service.settings.ConnectTimeout)
	defer cancel()
	conn, sock, early, err := s.dialProvider(ctx)
	if err != nil {
		return nil, err
	}
	l := newLink(s, conn, sock)
	l.queueText(func(b []byte) []byte { return aiprotocol.AppendStart(b, s.startMessage()) })
	l.write(l.connectedAt)
	l.earlyBytes = early
	return l, nil
}

func newLink(s *Session, conn net.Conn, sock *nonblockingConn) *link {
	l := &link{conn: conn, sock: sock, outbox: newOutbox(), connectedAt: time.Now(), lost: make(chan struct{})}
	l.reader = newProviderReader(s, l)
	return l
}

// queueText queues a message other than audio and reports whether there was room.
func (l *link) queueText(appendTo func([]byte) []byte) bool {
	b := appendTo(wsframe.BeginClientFrame(l.outbox.getBuffer()))
	return l.outbox.put(frame{buffer: b, start: wsframe.FinishClientFrame(b, wsframe.Text)}) == 0
}

// queueAudio queues a media message and returns how many frames of audio were dropped for it.
func (l *link) queueAudio(payload []byte) (dropped int) {
	b := aiprotocol.AppendMedia(wsframe.BeginClientFrame(l.outbox.getBuffer()), payload)
	return l.outbox.put(frame{buffer: b, start: wsframe.FinishClientFrame(b, wsframe.Text), isAudio: true})
}

func (l *link) queueFrame(opcode byte, payload []byte, last bool) {
	b := append(wsframe.BeginClientFrame(l.outbox.getBuffer()), payload...)
	l.outbox.put(frame{buffer: b, start: wsframe.FinishClientFrame(b, opcode), isClose: last})
}

// queuePong queues the response to a ping.
func (l *link) queuePong(data []byte) { l.queueFrame(wsframe.Pong, data, false) }

// queueClose queues the close frame. Nothing is sent after it.
func (l *link) queueClose() {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.queueFrame(wsframe.Close, websocket.FormatCloseMessage(closedNormal, ""), true)
}

// read reads the bytes that have arrived since the last tick. buffer is used during the call only.
func (l *link) read(buffer []byte, now time.Time) {
	l.sock.drained = false
	if early := l.earlyBytes; len(early) > 0 {
		l.earlyBytes = nil
		l.handleBytes(early, now)
	}
	for bytes, records := 0, 0; bytes < maxTickBytes && records < maxTickRecords; records++ {
		if l.closed || l.reader.throttle.blocked(now) {
			return
		}
		n, err := l.conn.Read(buffer)
		if n > 0 {
			l.handleBytes(buffer[:n], now)
			bytes += n
		}
		switch {
		case err == nil:
		case errors.Is(err, errWouldBlock):
			return
		default:
			l.fail(fmt.Errorf("reading from the provider: %w", err))
			return
		}
	}
}

// handleBytes handles received bytes.
func (l *link) handleBytes(b []byte, now time.Time) {
	l.reader.now = now
	err := l.assembler.write(b, l.reader)
	if err == nil {
		return
	}
	var gone *websocket.CloseError
	switch {
	case errors.As(err, &gone):
		l.writeClose(websocket.CloseNormalClosure)
		l.write(now) // send our close frame, if it is queued
	case errors.Is(err, websocket.ErrReadLimit):
		l.writeClose(websocket.CloseMessageTooBig)
	default:
		l.writeClose(websocket.CloseProtocolError)
	}
	l.fail(err)
}

// writeClose sends a close frame at once, unless one was sent, and drops queued frames.
func (l *link) writeClose(code int) {
	if l.outbox.close() {
		b := append(wsframe.BeginClientFrame(nil), websocket.FormatCloseMessage(code, "")...)
		from := wsframe.FinishClientFrame(b, wsframe.Close)
		_, _ = l.conn.Write(b[from:]) // best effort: the provider may have closed already
	}
}

// write writes queued frames, as much as the kernel accepts without blocking.
func (l *link) write(now time.Time) {
	if l.closed {
		return
	}
	wrote, err := l.sock.flush()
	for err == nil && len(l.sock.pending) == 0 {
		f, waiting := l.outbox.pop()
		if !waiting {
			break
		}
		_, err = l.conn.Write(f.bytes())
		wrote = true
		if f.isClose {
			l.closeDeadline = now.Add(closeTimeout)
		}
		l.outbox.recycle(f)
	}
	switch {
	case err != nil:
		l.fail(fmt.Errorf("writing to the provider: %w", err))
	case len(l.sock.pending) == 0:
		l.blockedSince = time.Time{}
	case wrote || l.blockedSince.IsZero():
		l.blockedSince = now
	case now.Sub(l.blockedSince) > writeTimeout:
		l.fail(errors.New("the provider does not read"))
	}
	if !l.closeDeadline.IsZero() && now.After(l.closeDeadline) {
		l.fail(nil) // the provider did not send its close frame
	}
}

// fail ends the connection. The first reason is kept.
func (l *link) fail(err error) {
	if l.closed {
		return
	}
	l.closed = true
	l.mu.Lock()
	if !l.closing {
		l.err = err
	}
	l.mu.Unlock()
	_ = l.conn.Close()
	close(l.lost)
}

func (l *link) lossError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
