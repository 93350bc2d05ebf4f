package fanout

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/fanout/conn"
)

// transportOwner acts on the subscriber of a transport.
type transportOwner interface {
	// disconnect closes the subscriber with a close frame.
	disconnect(s *subscriber, d conn.Disconnect)
	// remove deletes the subscriber after its connection has ended.
	remove(s *subscriber, d conn.Disconnect)
	// scheduleNow passes the subscriber to a writer.
	scheduleNow(ctx context.Context, s *subscriber)
}

// webSocket sends a subscriber's frames over a WebSocket.
type webSocket struct {
	owner      transportOwner
	goroutines *goroutineGroup

	handshake  sync.Mutex // guards conn and isClosed until the handshake is complete
	conn       *conn.WebSocket
	isClosed   bool
	peerClosed bool // the peer has sent a close frame; guarded by the subscriber's mu
	// the peer accepts compressed messages; frames queued before this is known are sent
	// uncompressed
	compress atomic.Bool
}

func (t *webSocket) message(m *frame, _ *cursorTracker) *conn.Frame {
	if m.compressed != nil && t.compress.Load() {
		return m.compressed.get(m)
	}
	return &m.Frame
}

func (t *webSocket) closing(d conn.Disconnect) *conn.Frame { return conn.NewClose(d) }

func (t *webSocket) cursor(cursor string) *conn.Frame {
	return conn.NewText(append(event.AppendString([]byte(`{"cursor":`), cursor), '}'))
}

func (t *webSocket) ping() *conn.Frame { return conn.Ping }

func (t *webSocket) answersPings() bool { return true }

func (t *webSocket) stuck(s *subscriber) bool { return s.queueOwner == blocked }

// close may be called during the handshake: attach then closes the connection.
func (t *webSocket) close(*subscriber) {
	t.handshake.Lock()
	defer t.handshake.Unlock()
	t.isClosed = true
	if t.conn != nil {
		_ = t.conn.Close()
	}
}

// attach sets the connection after the handshake. It closes the connection if the
// subscriber has already been removed.
func (t *webSocket) attach(c *conn.WebSocket) {
	t.handshake.Lock()
	defer t.handshake.Unlock()
	t.conn = c
	t.compress.Store(c.Compressed)
	if t.isClosed {
		_ = c.Close()
	}
}

// sendQueued sends queued frames until the queue is empty or the socket is full.
func (t *webSocket) sendQueued(s *subscriber, scratch []byte) {
	s.mu.Lock()
	for s.queueOwner != closed {
		s.queueClosing()
		if s.queue.Empty() {
			s.queueOwner = unowned
			closeFrameSent := s.closing != nil
			s.mu.Unlock()

			if closeFrameSent {
				t.awaitPeerClose(s)
			}

			return
		}

		waiting := s.queue.Gather(scratch, conn.WriteBytes)
		s.mu.Unlock()

		n, full, err := t.conn.Send(waiting)

		s.mu.Lock()
		if s.queueOwner == closed {
			break
		}

		s.advanceQueue(n)
		if !full && err == nil {
			continue
		}

		if full {
			s.queueOwner = blocked
			s.queue.SetSpilled(t.conn.Spilled())
			// A full socket ends the wait of a stream for space, see spaceAvailable.
			s.signalSpace()
		}
		s.mu.Unlock()

		if err != nil || !t.goroutines.start(func() { t.awaitWritable(s) }) {
			t.owner.remove(s, DisconnectBroken)
		}

		return
	}
	s.mu.Unlock()
}

// awaitWritable blocks until the socket has room again. Only subscribers with a full socket
// have such a goroutine.
func (t *webSocket) awaitWritable(s *subscriber) {
	s.mu.Lock()
	if s.queueOwner == closed {
		s.mu.Unlock()
		return
	}

	var rest []byte
	if !s.queue.Empty() {
		rest = s.queue.Rest()
	}
	s.mu.Unlock()

	n, err := t.conn.Wait(rest)

	s.mu.Lock()
	if s.queueOwner == closed {
		s.mu.Unlock()
		return
	}

	s.queue.SetSpilled(t.conn.Spilled())
	s.advanceQueue(n)
	s.queueOwner = scheduled
	s.mu.Unlock()

	if err != nil {
		t.owner.remove(s, DisconnectBroken)
		return
	}

	t.owner.scheduleNow(t.goroutines.ctx, s)
}

// peerCloseTimeout bounds the reading of input after a close frame was written, so that a TCP
// reset does not discard the frame.
const peerCloseTimeout = time.Second

// awaitPeerClose waits a moment for the peer's close frame, unless it has already
// arrived.
func (t *webSocket) awaitPeerClose(s *subscriber) {
	s.mu.Lock()
	done := t.peerClosed
	deadline := time.Now().Add(peerCloseTimeout)
	// Then the sweeper closes the connection, if the peer has not.
	if deadline.Before(s.closing.deadline) {
		s.closing.deadline = deadline
	}
	s.mu.Unlock()

	if done {
		t.owner.remove(s, DisconnectNormal)
	}
}

// Limits of a peer's data messages within a window; a peer that exceeds them is
// disconnected.
const (
	peerMessages      = 10
	peerMessageBytes  = conn.MaxPeerMessage
	peerMessageWindow = 10 * time.Second
)

// read handles frames of the peer until the connection ends.
func (t *webSocket) read(s *subscriber) {
	err := t.conn.Read(&peerFrames{webSocket: t, subscriber: s})
	t.handleReadError(s, err)
}

// peerFrames handles the frames of a subscriber's peer. It implements conn.Handler.
type peerFrames struct {
	*webSocket
	subscriber *subscriber

	windowStart     time.Time // messages and total are counted from here
	messages, total int
}

func (p *peerFrames) FrameReceived() { p.subscriber.lastSeen.Store(time.Now().Unix()) }

func (p *peerFrames) PongReceived() { p.subscriber.lastPong.Store(time.Now().Unix()) }

func (p *peerFrames) PingReceived(payload []byte) {
	if p.subscriber.pushControl(conn.NewPong(payload)) == pushNeedsWriter {
		p.owner.scheduleNow(p.goroutines.ctx, p.subscriber)
	}
}

// MessageReceived disconnects a peer that sends more than a client has reason to.
func (p *peerFrames) MessageReceived(bytes int) {
	now := time.Now()
	if now.Sub(p.windowStart) > peerMessageWindow {
		p.windowStart, p.messages, p.total = now, 0, 0
	}

	p.messages, p.total = p.messages+1, p.total+bytes
	if p.messages > peerMessages || p.total > peerMessageBytes {
		p.owner.disconnect(p.subscriber, DisconnectClientMessages)
	}
}

// handleReadError disconnects a subscriber whose peer has closed or broken the connection, or
// violated the protocol.
func (t *webSocket) handleReadError(s *subscriber, err error) {
	code, peerClosed := conn.PeerClose(err)
	switch {
	case peerClosed:
		s.mu.Lock()
		t.peerClosed = true
		s.mu.Unlock()

		if !s.isDisconnected() { // the peer closed first: echo its code, RFC 6455 5.5.1
			t.owner.disconnect(s, conn.Disconnect{Code: code})
			t.conn.Discard() // until awaitPeerClose or the sweeper closes the connection
		}

		t.owner.remove(s, DisconnectNormal)
	case conn.Broken(err):
		t.owner.remove(s, DisconnectBroken)
	default:
		t.owner.disconnect(s, DisconnectProtocolError)
		t.conn.Discard()
		t.owner.remove(s, DisconnectProtocolError)
	}
}
