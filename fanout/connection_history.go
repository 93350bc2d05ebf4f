package fanout

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/fanout/conn"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/wsframe"
)

// connectionHistory records the ranges of events offered to a connection, for explanations
// (explain.go). It changes when a connection begins, joins a partition, becomes live
// and ends, never with an event. The subscriber's lock guards it.
type connectionHistory struct {
	resumedFrom  resumedFrom
	firstOffsets []partitionOffset // the first offset offered to it, by partition
	liveSince    time.Time         // zero: its replay is not finished
	end          *connectionEnd    // nil: not ended
}

// resumedFrom is the position from which a connection requested a resume; zero: none.
type resumedFrom struct {
	after     event.ID // 0: earliest, or a cursor from before the first event
	earliest  bool
	requested bool
}

func (r resumedFrom) String() string {
	if r.earliest {
		return Earliest
	}
	return r.after.String()
}

// partitionOffset is an offset of a partition of cc.evt.
type partitionOffset struct {
	partition int
	offset    int64
}

func offsetIn(all []partitionOffset, partition int) (offset int64, ok bool) {
	for _, p := range all {
		if p.partition == partition {
			return p.offset, true
		}
	}
	return 0, false
}

// recordFirstOffset records that a partition is offered to the connection from an offset on.
func (h *connectionHistory) recordFirstOffset(partition int, offset int64) {
	for i := range h.firstOffsets {
		b := &h.firstOffsets[i]
		if b.partition == partition { // it follows the partition again
			b.offset = min(b.offset, offset)
			return
		}
	}
	h.firstOffsets = append(h.firstOffsets, partitionOffset{partition, offset})
}

// recordFirstOffsets records the offsets from which a subscriber receives events. The caller
// holds index.mu for writing.
func (f *Fanout) recordFirstOffsets(a *admission) {
	s := a.subscriber
	s.mu.Lock()
	defer s.mu.Unlock()

	s.connectionHistory.firstOffsets = make([]partitionOffset, 0, max(len(a.starts), 1))
	for _, start := range a.starts {
		s.connectionHistory.recordFirstOffset(start.partition, start.next)
	}

	if a.starts != nil {
		return
	}

	s.connectionHistory.liveSince = time.Now()
	for p := range s.partitions.interest.all() {
		s.connectionHistory.recordFirstOffset(p, f.followedPartitions.stream(p).livePosition.next)
	}
}

// outcomeBeforeFirst returns the outcome of an event before the first one offered to the
// connection.
func (h *connectionHistory) outcomeBeforeFirst() Outcome {
	if h.resumedFrom.requested {
		return OutcomeResumedLater
	}
	return OutcomeConnectedLater
}

// connectionEnd is the end of a connection.
type connectionEnd struct {
	endedAt time.Time
	// everything before was offered to it; nil: unknown, it ended in a replay without a cursor
	reachedOffsets []partitionOffset
	unsent         []event.ID // the lowest unsent message of each partition
}

// ensureEnd returns the end of the connection and creates it if necessary.
func (h *connectionHistory) ensureEnd() *connectionEnd {
	if h.end == nil {
		h.end = &connectionEnd{endedAt: time.Now()}
	}
	return h.end
}

// recordDropped records the waiting messages of a queue that is about to be dropped.
func (e *connectionEnd) recordDropped(q *conn.Queue) {
	for id := range q.IDs() {
		e.recordUnsent(event.ID(id))
	}
}

// recordUnsent records an unsent message, in any order.
func (e *connectionEnd) recordUnsent(id event.ID) {
	for i, first := range e.unsent {
		if first.Partition() == id.Partition() {
			e.unsent[i] = min(first, id)
			return
		}
	}
	e.unsent = append(e.unsent, id)
}

func (e *connectionEnd) wasDropped(id event.ID) bool {
	return slices.ContainsFunc(e.unsent,
		func(first event.ID) bool { return first.Partition() == id.Partition() && first <= id })
}

// recordReached records the offsets up to which a subscriber was offered events, when it
// leaves the index. The caller holds index.mu for writing and the subscriber's lock.
func (f *Fanout) recordReached(s *subscriber) {
	end := s.connectionHistory.ensureEnd()
	switch {
	case !s.partitions.isIndexed:
	case !s.replaying.Load():
		for p := range s.partitions.interest.all() {
			end.reachedOffsets = append(end.reachedOffsets,
				partitionOffset{p, f.followedPartitions.stream(p).livePosition.next})
		}
	case s.cursorTracker != nil:
		for i := range s.cursorTracker.positions {
			at := &s.cursorTracker.positions[i]
			end.reachedOffsets = append(end.reachedOffsets, partitionOffset{at.partition, at.next})
		}
	}
}

// pastConnection is a connection that has ended, or a resume that was refused.
type pastConnection struct {
	connectionHistory
	id          string
	principal   *identity.Principal
	transport   string
	connectedAt time.Time
	lastID      event.ID
	disconnect  conn.Disconnect
	refused     bool
}

// pastConnection returns what is kept of a connection that has ended. The result shares no
// mutable data: a replay may still be running. Events that the replay misses from now
// on are after the recorded positions. The caller holds mu.
func (s *subscriber) pastConnection(d conn.Disconnect) *pastConnection {
	end := *s.connectionHistory.ensureEnd()
	end.unsent = slices.Clone(end.unsent)
	history := s.connectionHistory
	history.end = &end
	return &pastConnection{connectionHistory: history, id: s.id, principal: s.principal, transport: s.transportName(),
		connectedAt: s.connectedAt,
		lastID:      s.lastID, disconnect: d}
}

// recordRefusal records a resume that was refused because the log no longer has its
// position.
func (f *Fanout) recordRefusal(a *admission, req Request, err error) {
	if fault.KindOf(err) != fault.KindGone {
		return
	}

	s, transport := a.subscriber, transportEventStream
	if wsframe.IsHandshake(req.HTTP) {
		transport = transportWebSocket
	}

	s.connectionHistory.ensureEnd()
	f.explanations.pastConnections.add(
		&pastConnection{connectionHistory: s.connectionHistory, id: s.id, principal: s.principal, transport: transport,
			connectedAt: s.connectedAt, refused: true,
			disconnect: conn.Disconnect{Code: http.StatusGone, Reason: err.Error()}})
}

// bytes estimates the memory of a connection that has ended.
func (p *pastConnection) bytes() int {
	size := 512 + 16*(len(p.firstOffsets)+len(p.end.reachedOffsets)) + 8*len(p.end.unsent)
	filter := &p.principal.Filter
	for _, list := range [...][]string{filter.AccountIDs, filter.EventTypes, filter.QueueIDs, filter.AgentIDs,
		filter.CallIDs, filter.Names} {
		for _, entry := range list {
			size += 16 + len(entry)
		}
	}
	return size
}

// Bounds of pastConnections.
const (
	maxPastConnections     = 1000
	maxPastConnectionBytes = 4 << 20
)

// pastConnections stores the newest connections that ended on this node.
type pastConnections struct {
	mu    sync.Mutex
	all   []*pastConnection // in the order in which they were added
	bytes int
	since time.Time // it has every connection that ended after this time
}

func (r *pastConnections) add(p *pastConnection) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.all = append(r.all, p)
	r.bytes += p.bytes()

	drop := 0
	for len(r.all)-drop > maxPastConnections || r.bytes > maxPastConnectionBytes && drop < len(r.all)-1 {
		r.bytes -= r.all[drop].bytes()
		at := r.all[drop].end.endedAt
		if at.After(r.since) { // they are not in the order in which they ended
			r.since = at
		}
		drop++
	}

	r.all = slices.Delete(r.all, 0, drop)
}

// list returns the connections, and the time from which they are complete.
func (r *pastConnections) list() (all []*pastConnection, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all), r.since
}
