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

// subscriber is one client of the channel on any transport: its filter, what
// waits for it, and the position it has reached.
type subscriber struct {
	// What every delivery reads and writes, from here to interest.follows, lies in
	// three lines of the processor's cache: at high rates it is in none.
	transport transport
	limit     int // bytes of memory that the queue may keep

	// replaying is true until the subscriber is live: streams leave it to its
	// replay. It changes to false with index.mu held for writing.
	replaying atomic.Bool

	mu         sync.Mutex // guards the fields down to session
	queue      conn.Queue
	state      queueOwner
	closing    *closing       // set once, by close
	tracker    *cursorTracker // nil: the client asked for no cursor
	spaceFreed chan struct{}  // closed when spaceAvailable may answer otherwise; nil: nobody waits
	lastID     event.ID       // of the last event that is out completely
	interest   interest
	session    session // for explanations

	id        string
	principal *identity.Principal
	address   string
	connected time.Time
	filter    atomic.Pointer[filter]
	slots     []indexSlot // guarded by index.mu
	pingAt    time.Time   // the sweeper's
	published int64       // the pong that the shared view has, 0: none; publishPresence's

	lastSeen atomic.Int64 // Unix seconds of the peer's last sign of life
	lastPong atomic.Int64 // Unix seconds; at first the time of connecting
}

// becomeLive ends the replay. The caller holds index.mu for writing.
func (s *subscriber) becomeLive(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.liveSince = now
	s.replaying.Store(false)
}

// Flush implements conn.Flusher.
func (s *subscriber) Flush(scratch []byte) { s.transport.flush(s, scratch) }

// transport sends a subscriber's frames over WebSocket or server-sent events.
type transport interface {
	// flush sends what waits; a writer calls it. It returns with the subscriber
	// idle, blocked or closed.
	flush(s *subscriber, scratch []byte)
	// message is the frame that is sent for m; at is the position after it.
	message(m *frame, at *cursorTracker) *conn.Frame
	// cursor is the frame with the client's cursor; nil when messages carry it.
	cursor(cursor string) *conn.Frame
	// closing is the last frame, with the reason.
	closing(d conn.Disconnect) *conn.Frame
	// ping is the frame that keeps the connection alive; answersPings says
	// whether its peer has to answer it.
	ping() *conn.Frame
	answersPings() bool
	// stuck says, with the subscriber's lock held, that the peer takes nothing.
	stuck(s *subscriber) bool
	// close ends the connection at once.
	close(*subscriber)
}

// queueOwner names the goroutine that may write the subscriber's queue next.
type queueOwner uint8

const (
	idle      queueOwner = iota // nobody: nothing waits
	scheduled                   // a writer has it, or will
	blocked                     // the socket is full; its waiter has it
	closed                      // nobody ever again
)

// closing is the end of a subscriber that has been disconnected.
type closing struct {
	conn.Disconnect
	queued bool      // its frame is in the queue
	by     time.Time // when the connection is closed, whether the frame went out or not
}

// pushResult is the result of a push.
type pushResult uint8

const (
	pushQueued       pushResult = iota // it waits behind others, or nobody wants it any more
	pushNeedsWriter                    // the queue was idle: hand the subscriber to a writer
	pushBackPressure                   // it waits, and the writers owe the subscriber a turn
	pushRefused                        // the queue is full, and so is the socket: not taken
)

// push puts an event on the queue.
func (s *subscriber) push(m *frame) pushResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushLocked(m)
}

// pushReplayed puts an event on the queue; room is false when the next one has
// to wait, see spaceAvailable.
func (s *subscriber) pushReplayed(m *frame) (p pushResult, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.pushLocked(m)
	return p, s.queue.Waiting() <= s.limit/2
}

func (s *subscriber) pushLocked(m *frame) pushResult {
	if s.closing != nil || s.state == closed {
		s.session.ending().miss(m.id)
		return pushQueued
	}
	full := s.queue.Waiting() > s.limit || s.state == blocked && !s.replaying.Load() && s.overLimit() // a replay asks spaceAvailable
	if full && s.transport.stuck(s) {
		return pushRefused
	}
	if s.tracker != nil {
		s.tracker.delivered(m)
	}
	s.queue.Push(s.transport.message(m, s.tracker))
	if full {
		return pushBackPressure
	}
	return s.wake()
}

// overLimit reports whether the queue holds more memory than its limit. Near
// the limit it copies frames out of their batches.
func (s *subscriber) overLimit() bool {
	if s.queue.Held() > s.limit-s.limit/4 {
		s.queue.Tidy()
	}
	return s.queue.Held() > s.limit
}

// pushControl puts a frame that is no event on the queue.
func (s *subscriber) pushControl(m *conn.Frame) pushResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil || s.state == closed {
		return pushQueued
	}
	s.queue.Push(m)
	return s.wake()
}

// pushCursor puts a cursor on the queue if events have passed since the last
// one. marks are the streams' positions by partition: where the subscriber is live
// they may be ahead of the last event it was given.
func (s *subscriber) pushCursor(marks []position) pushResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracker == nil || !s.tracker.dirty || s.closing != nil || s.state == closed {
		return pushQueued
	}
	if !s.replaying.Load() {
		for p := range s.interest.follows.all() {
			if p < len(marks) && marks[p].next >= 0 {
				s.tracker.advance(p, marks[p])
			}
		}
	}
	m := s.transport.cursor(s.tracker.cursor())
	if m == nil {
		return pushQueued
	}
	s.tracker.dirty = false
	s.queue.Push(m)
	return s.wake()
}

func (s *subscriber) wake() pushResult {
	if s.state != idle {
		return pushQueued
	}
	s.state = scheduled
	return pushNeedsWriter
}

// close disconnects the subscriber; the connection is closed by that time at the
// latest. wake: it must be handed to a writer.
func (s *subscriber) close(d conn.Disconnect, by time.Time) (first, wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil || s.state == closed {
		return false, false
	}
	s.closing = &closing{Disconnect: d, by: by}
	end := s.session.ending()
	if s.state == blocked { // the waiter has the first frame only, and may wait until by
		end.drop(&s.queue)
		s.queue.DropTail()
	}
	s.signalSpace()
	return true, s.wake() == pushNeedsWriter
}

// queueClosing replaces what waits by the close frame, once the subscriber has
// been disconnected. Only the owner of the queue calls it, with mu held, and with
// no write under way.
func (s *subscriber) queueClosing() {
	if s.closing == nil || s.closing.queued {
		return
	}
	s.session.ending().drop(&s.queue)
	if unfinished := s.queue.Drop(); unfinished != 0 {
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
	s.closing.queued = true
}

// written takes n written bytes off the queue, with mu held.
func (s *subscriber) written(n int) {
	if n > 0 {
		if last := s.queue.Advance(n); last != 0 {
			s.lastID = event.ID(last)
		}
	}
	if s.queue.Waiting() <= s.limit/2 {
		s.signalSpace()
	}
}

func (s *subscriber) signalSpace() {
	if s.spaceFreed != nil {
		close(s.spaceFreed)
		s.spaceFreed = nil
	}
}

// spaceAvailable returns nil when more may be pushed, else a channel that is
// closed when it should be called again. With impatient it also returns nil for
// a full socket.
func (s *subscriber) spaceAvailable(impatient bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.Waiting() <= s.limit/2 && !(s.state == blocked && s.overLimit()) || s.closing != nil || s.state == closed || impatient && s.transport.stuck(s) {
		return nil
	}
	if s.spaceFreed == nil {
		s.spaceFreed = make(chan struct{})
	}
	return s.spaceFreed
}

// markClosed sets the state closed and clears the queue; first is true for the
// first call.
func (s *subscriber) markClosed() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return false
	}
	s.state = closed
	s.session.ending().drop(&s.queue)
	s.queue.Clear()
	s.signalSpace()
	return true
}

func (s *subscriber) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing != nil || s.state == closed
}

// deliveryState reports whether the subscriber is gone, or else whether the event
// was written. A server-sent event counts as written once the subscriber was
// flushed, because its HTTP handler then writes the whole queue.
func (s *subscriber) deliveryState(id event.ID) (gone, written bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed || s.closing != nil {
		return true, false
	}
	return false, s.transportName() == transportEventStream || !s.queue.Contains(int64(id))
}

// waitForSpace waits until the writers have emptied half of the queue of s or
// its socket is full.
func (s *subscriber) waitForSpace(ctx context.Context) {
	for room := s.spaceAvailable(true); room != nil; room = s.spaceAvailable(true) {
		select {
		case <-room:
		case <-time.After(stuckAfter): // whether it is stuck may depend on time
		case <-ctx.Done():
			return
		}
	}
}
