package fanout

import (
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/identity"
)

// subscriber is one client of the channel, whatever carries it: its filter,
// what waits for it, and how far it has come.
type subscriber struct {
	id        string
	principal *identity.Principal
	address   string
	connected time.Time
	filter    atomic.Pointer[filter]
	slots     []indexSlot // guarded by index.mu
	outlet    outlet
	limit     int       // bytes of memory that the queue may keep
	pingAt    time.Time // the sweeper's
	published int64     // the pong that the shared view has, 0: none; publishPresence's

	// replaying is true until the subscriber is live: streams leave it to its
	// replay. It changes to false with index.mu held for writing.
	replaying atomic.Bool

	heard    atomic.Int64 // Unix seconds of the peer's last sign of life
	lastPong atomic.Int64 // Unix seconds; at first the time of connecting

	mu      sync.Mutex
	queue   queue
	state   state
	end     *ending        // set once: the subscriber has been told to go
	tracker *cursorTracker // nil: the client asked for no cursor
	room    chan struct{}  // closed when roomFor may answer otherwise; nil: nobody waits
	lastID  event.ID       // of the last event that is out completely
}

// outlet is what carries a subscriber's frames.
type outlet interface {
	// flush is called by a writer when something waits. It returns with the
	// subscriber idle, blocked or closed.
	flush(s *subscriber, scratch []byte)
	// event is the frame this outlet sends for m; at is the position after it.
	event(m *frame, at *cursorTracker) *frame
	// cursor is the frame that tells the client its cursor; nil when the events
	// themselves carry it.
	cursor(cursor string) *frame
	// farewell is the last frame: it says why the subscriber goes.
	farewell(code int, reason string) *frame
	// ping is the frame that keeps the connection alive; answers says whether
	// its peer has to answer it.
	ping() *frame
	answers() bool
	// stuck says, with the subscriber's lock held, that the peer takes nothing.
	stuck(s *subscriber) bool
	// shut ends the connection at once.
	shut()
}

// state says who has the subscriber's queue.
type state uint8

const (
	idle      state = iota // nobody: nothing waits
	scheduled              // a writer has it, or will
	blocked                // the socket is full; its waiter has it
	closed                 // nobody ever again
)

// ending is why a subscriber goes, and by when it is gone whether its last
// frame went out or not.
type ending struct {
	code   int
	reason string
	queued bool // the farewell is in the queue
	by     time.Time
}

// pushed is what push did.
type pushed uint8

const (
	pushWaits pushed = iota // it waits behind others, or nobody wants it any more
	pushWakes               // the queue was idle: hand the subscriber to a writer
	pushOwed                // it waits, and the writers owe the subscriber a turn
	pushOver                // the queue is full, and so is the socket: not taken
)

// push puts an event on the queue.
func (s *subscriber) push(m *frame) pushed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushLocked(m)
}

// pushReplayed puts an event on the queue; room is false when the next one has
// to wait, see roomFor.
func (s *subscriber) pushReplayed(m *frame) (p pushed, room bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p = s.pushLocked(m)
	return p, s.queue.bytes <= s.limit/2
}

func (s *subscriber) pushLocked(m *frame) pushed {
	if s.end != nil || s.state == closed {
		return pushWaits
	}
	full := s.queue.bytes > s.limit || s.state == blocked && !s.replaying.Load() && s.overLimit() // a replay asks roomFor
	if full && s.outlet.stuck(s) {
		return pushOver
	}
	if s.tracker != nil {
		s.tracker.delivered(m)
	}
	s.queue.push(s.outlet.event(m, s.tracker))
	if full {
		return pushOwed
	}
	return s.wake()
}

// overLimit says whether a queue that must wait for its socket keeps more memory
// than it may. Before it comes to that, frames are copied out of their batches.
// A queue that a writer is about to take needs no such copies.
func (s *subscriber) overLimit() bool {
	if s.queue.held > s.limit-s.limit/4 {
		s.queue.tidy()
	}
	return s.queue.held > s.limit
}

// pushControl puts a frame that is no event on the queue.
func (s *subscriber) pushControl(m *frame) pushed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil || s.state == closed {
		return pushWaits
	}
	s.queue.push(m)
	return s.wake()
}

// pushCursor puts a cursor on the queue if events have passed since the last
// one. marks are the streams' positions: where the subscriber is live they may
// be ahead of the last event it was given.
func (s *subscriber) pushCursor(marks []position) pushed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tracker == nil || !s.tracker.dirty || s.end != nil || s.state == closed {
		return pushWaits
	}
	if !s.replaying.Load() {
		for p, mark := range marks {
			s.tracker.advance(p, mark)
		}
	}
	m := s.outlet.cursor(s.tracker.cursor())
	if m == nil {
		return pushWaits
	}
	s.tracker.dirty = false
	s.queue.push(m)
	return s.wake()
}

func (s *subscriber) wake() pushed {
	if s.state != idle {
		return pushWaits
	}
	s.state = scheduled
	return pushWakes
}

// tell says that the subscriber must go. wake: hand it to a writer.
func (s *subscriber) tell(code int, reason string, by time.Time) (first, wake bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end != nil || s.state == closed {
		return false, false
	}
	s.end = &ending{code: code, reason: reason, by: by}
	if s.state == blocked { // the waiter has the first frame only, and may wait until by
		s.queue.dropTail()
	}
	s.freeRoom()
	return true, s.wake() == pushWakes
}

// conclude puts the farewell in place of what waits, once the subscriber has
// been told to go. Only who has the queue calls it, with mu held, and with no
// write under way.
func (s *subscriber) conclude() {
	if s.end == nil || s.end.queued {
		return
	}
	if !s.queue.empty() && s.queue.sent > 0 && !s.queue.frames[s.queue.head].control {
		s.lastID = s.queue.frames[s.queue.head].id
	}
	s.queue.drop()
	reason := s.end.reason
	if s.lastID != 0 {
		if reason != "" {
			reason += "; "
		}
		reason += "last event " + s.lastID.String()
	}
	s.queue.push(s.outlet.farewell(s.end.code, reason))
	s.end.queued = true
}

// advanced takes n written bytes off the queue, with mu held.
func (s *subscriber) advanced(n int) {
	if n > 0 {
		if last := s.queue.advance(n); last != nil {
			s.lastID = last.id
		}
	}
	if s.queue.bytes <= s.limit/2 {
		s.freeRoom()
	}
}

func (s *subscriber) freeRoom() {
	if s.room != nil {
		close(s.room)
		s.room = nil
	}
}

// roomFor returns nil when more may be pushed, else what to wait for before
// asking again. The impatient wait for our writers only, not for a socket that
// is full.
func (s *subscriber) roomFor(impatient bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.queue.bytes <= s.limit/2 && !(s.state == blocked && s.overLimit()) || s.end != nil || s.state == closed || impatient && s.outlet.stuck(s) {
		return nil
	}
	if s.room == nil {
		s.room = make(chan struct{})
	}
	return s.room
}

// finish marks the subscriber as gone; first is true once.
func (s *subscriber) finish() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed {
		return false
	}
	s.state = closed
	s.queue.release()
	s.freeRoom()
	return true
}

func (s *subscriber) gone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end != nil || s.state == closed
}
