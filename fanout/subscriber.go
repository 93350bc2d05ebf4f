package fanout

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/fanout/conn"
	"trunkline/identity"
)

// subscriber is one client of the channel on any transport: its filter, queue and
// position.
type subscriber struct {
	// The fields that every delivery uses, from here to partitions.interest, occupy three
	// cache lines: at high rates none of them is cached.
	transport  transport
	queueLimit int // bytes of memory that the queue may keep

	// replaying is true until the subscriber is live: until then only its replay
	// delivers events. It changes to false with index.mu held for writing.
	replaying atomic.Bool

	mu                sync.Mutex // guards the fields down to connectionHistory
	queueOwner        queueOwner // beside mu, where it takes no memory of its own
	queue             conn.Queue
	closing           *closing       // set by close, once
	cursorTracker     *cursorTracker // nil: the client requested no cursor
	spaceFreed        chan struct{}  // closed when spaceAvailable may return another result; nil: no goroutine waits
	lastID            event.ID       // last event that was sent completely
	partitions        subscriberPartitions
	connectionHistory connectionHistory // what it was offered, for explanations

	id            string
	principal     *identity.Principal
	address       string
	connectedAt   time.Time
	filter        atomic.Pointer[filter]
	onLive        func()      // called when the replay has ended; nil: nothing waits for it
	indexSlots    []indexSlot // guarded by index.mu
	pingAt        time.Time   // of the next ping; used by the sweeper only
	publishedPong int64       // lastPong as stored in the shared presence, 0: none; used by publishPresence only

	lastSeen atomic.Int64 // Unix seconds of the last frame received
	lastPong atomic.Int64 // Unix seconds; initially the time of the connect
}

// becomeLive ends the replay. The caller holds index.mu for writing.
func (s *subscriber) becomeLive(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connectionHistory.liveSince = now
	s.replaying.Store(false)
	if s.onLive != nil {
		s.onLive()
	}
}

// Flush implements conn.Flusher.
func (s *subscriber) Flush(scratch []byte) { s.transport.sendQueued(s, scratch) }

// transport sends a subscriber's frames over WebSocket or server-sent events.
type transport interface {
	// sendQueued sends queued frames; writers call it. When it returns, the subscriber is
	// idle, blocked or closed.
	sendQueued(s *subscriber, scratch []byte)
	// message returns the frame to send for m; at is the position after it.
	message(m *frame, at *cursorTracker) *conn.Frame
	// cursor returns the frame with the client's cursor; nil if messages carry it.
	cursor(cursor string) *conn.Frame
	// closing returns the last frame, which has the reason.
	closing(d conn.Disconnect) *conn.Frame
	// ping returns the frame that keeps the connection alive; answersPings reports
	// whether the peer must answer it.
	ping() *conn.Frame
	answersPings() bool
	// stuck reports whether the peer accepts no data. The caller holds the
	// subscriber's lock.
	stuck(s *subscriber) bool
	// close ends the connection at once.
	close(*subscriber)
}

// queueOwner is the goroutine that may take frames from the subscriber's queue next.
type queueOwner uint8

const (
	unowned   queueOwner = iota // none: the queue is empty
	scheduled                   // a writer has it, or will have it
	blocked                     // the waiter, because the socket is full
	closed                      // none, finally
)

// closing is the end of a subscriber that has been disconnected.
type closing struct {
	conn.Disconnect
	frameQueued bool      // its frame is in the queue
	deadline    time.Time // when the connection is closed, even if the frame was not sent
}

// pushResult is the result of a push.
type pushResult uint8

const (
	pushQueued       pushResult = iota // it waits behind others, or was dropped because the subscriber is closed
	pushNeedsWriter                    // the queue was idle: pass the subscriber to a writer
	pushBackPressure                   // queued beyond the limit: wait until a writer has emptied the queue
	pushRefused                        // dropped: the queue and the socket are full
)

// push puts an event on the queue.
func (s *subscriber) push(m *frame) pushResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushLocked(m)
}

// pushReplayed puts an event on the queue; room is false if the next one must wait,
// see spaceAvailable.
func (s *subscriber) pushReplayed(m *frame) (p pushResult, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.pushLocked(m)
	return p, s.queue.WaitingBytes() <= s.queueLimit/2
}

func (s *subscriber) pushLocked(m *frame) pushResult {
	if s.closing != nil || s.queueOwner == closed {
		s.connectionHistory.ensureEnd().recordUnsent(m.id)
		return pushQueued
	}

	// replays use spaceAvailable instead
	full := s.queue.WaitingBytes() > s.queueLimit || s.queueOwner == blocked && !s.replaying.Load() && s.overLimit()
	if full && s.transport.stuck(s) {
		return pushRefused
	}
	if s.cursorTracker != nil {
		s.cursorTracker.recordDelivered(m)
	}

	s.queue.Push(s.transport.message(m, s.cursorTracker))
	if full {
		return pushBackPressure
	}

	return s.schedule()
}

// overLimit reports whether the queue keeps more memory than its limit. Near the limit
// it first copies frames out of their batches.
func (s *subscriber) overLimit() bool {
	if s.queue.HeldBytes() > s.queueLimit-s.queueLimit/4 {
		s.queue.CopySparseBlocks()
	}
	return s.queue.HeldBytes() > s.queueLimit
}

// pushControl puts a frame that is not an event on the queue.
func (s *subscriber) pushControl(m *conn.Frame) pushResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil || s.queueOwner == closed {
		return pushQueued
	}
	s.queue.Push(m)
	return s.schedule()
}

// pushCursor puts a cursor on the queue if events were delivered since the last one.
// live are the streams' positions by partition; for a live subscriber they may be
// ahead of the last event delivered to it.
func (s *subscriber) pushCursor(live []position) pushResult {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.cursorTracker == nil || !s.cursorTracker.dirty || s.closing != nil || s.queueOwner == closed {
		return pushQueued
	}

	if !s.replaying.Load() {
		for p := range s.partitions.interest.all() {
			if p < len(live) && live[p].next >= 0 {
				s.cursorTracker.advance(p, live[p])
			}
		}
	}

	m := s.transport.cursor(s.cursorTracker.cursor())
	if m == nil {
		return pushQueued
	}

	s.cursorTracker.dirty = false
	s.queue.Push(m)
	return s.schedule()
}

func (s *subscriber) schedule() pushResult {
	if s.queueOwner != unowned {
		return pushQueued
	}
	s.queueOwner = scheduled
	return pushNeedsWriter
}

// close disconnects the subscriber; its connection is closed at the deadline by at
// the latest. wake: the caller must pass it to a writer.
func (s *subscriber) close(d conn.Disconnect, by time.Time) (first, wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.closing != nil || s.queueOwner == closed {
		return false, false
	}

	s.closing = &closing{Disconnect: d, deadline: by}
	end := s.connectionHistory.ensureEnd()
	if s.queueOwner == blocked { // the waiter only sends the first frame, and may wait until by
		end.recordDropped(&s.queue)
		s.queue.DropTail()
	}

	s.signalSpace()
	return true, s.schedule() == pushNeedsWriter
}

// queueClosing replaces the queued frames by the close frame of a disconnected
// subscriber. Only the owner of the queue calls it, with mu held and no write in
// progress.
func (s *subscriber) queueClosing() {
	if s.closing == nil || s.closing.frameQueued {
		return
	}

	s.connectionHistory.ensureEnd().recordDropped(&s.queue)
	unfinished := s.queue.Drop()
	// Its rest is sent before the close frame.
	if unfinished != 0 {
		s.lastID = event.ID(unfinished)
	}

	d := s.closing.Disconnect
	if s.lastID != 0 {
		if d.Reason != "" {
			d.Reason += "; "
		}
		d.Reason += "last event " + s.lastID.String()
	}

	s.queue.Push(s.transport.closing(d))
	s.closing.frameQueued = true
}

// advanceQueue removes n written bytes from the queue. The caller holds mu.
func (s *subscriber) advanceQueue(n int) {
	if n > 0 {
		last := s.queue.Advance(n)
		if last != 0 {
			s.lastID = event.ID(last)
		}
	}
	if s.queue.WaitingBytes() <= s.queueLimit/2 {
		s.signalSpace()
	}
}

func (s *subscriber) signalSpace() {
	if s.spaceFreed != nil {
		close(s.spaceFreed)
		s.spaceFreed = nil
	}
}

// spaceAvailable returns nil if more events may be pushed, or else a channel that is
// closed when it should be called again. With orFullSocket it also returns nil for a
// full socket.
func (s *subscriber) spaceAvailable(orFullSocket bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.queue.WaitingBytes() <= s.queueLimit/2 && !(s.queueOwner == blocked && s.overLimit()) || s.closing != nil ||
		s.queueOwner == closed || orFullSocket && s.transport.stuck(s) {
		return nil
	}
	if s.spaceFreed == nil {
		s.spaceFreed = make(chan struct{})
	}

	return s.spaceFreed
}

// markClosed sets the state closed and clears the queue; first is true in the first
// call.
func (s *subscriber) markClosed() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.queueOwner == closed {
		return false
	}

	s.queueOwner = closed
	s.connectionHistory.ensureEnd().recordDropped(&s.queue)
	s.queue.Clear()
	s.signalSpace()

	return true
}

func (s *subscriber) isDisconnected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing != nil || s.queueOwner == closed
}

// deliveryState reports whether the subscriber is disconnected, or else whether the event
// was written. A server-sent event counts as written once the subscriber was
// flushed, because its HTTP handler then writes the whole queue.
func (s *subscriber) deliveryState(id event.ID) (gone, written bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queueOwner == closed || s.closing != nil {
		return true, false
	}
	return false, s.transportName() == transportEventStream || !s.queue.Contains(int64(id))
}

// waitForSpace waits until half of the subscriber's queue is empty or its socket is
// full.
func (s *subscriber) waitForSpace(ctx context.Context) {
	for room := s.spaceAvailable(true); room != nil; room = s.spaceAvailable(true) {
		select {
		case <-room:
		case <-time.After(stuckAfter): // stuck may depend on the time
		case <-ctx.Done():
			return
		}
	}
}
