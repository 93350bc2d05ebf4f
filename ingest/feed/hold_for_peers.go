package feed

import (
	"context"
	"time"

	"trunkline/internal/retry"
)

const (
	// orderTimeout is the longest time for which a node holds its events for another one.
	orderTimeout = 5 * time.Second
	// peerPoll is the pause between two looks at the progress of the others.
	peerPoll = 200 * time.Millisecond
	// peerDelay is how much later than this node's reading of an event the stored progress of another node must be
	// to include it: both read it within 500 ms, and to store takes at most storeTimeout.
	peerDelay = storeTimeout + 500*time.Millisecond
)

// nodeProgress is the status that a node publishes to keep the events of two nodes in order.
type nodeProgress struct {
	Sent    Identity `json:"sent"`    // identity of the last event that Kafka has
	Pending bool     `json:"pending"` // Kafka does not have all events that may be sent
	First   Identity `json:"first"`   // identity of the first held event of the connection; zero if no events are held
}

// peerProgress is the progress of another node, and its age.
type peerProgress struct {
	nodeProgress
	age time.Duration // since it was stored
}

// connectionHold is why the events of a connection are held: other nodes may have to send
// earlier ones. The zero value means that no events are held.
type connectionHold struct {
	connectedAt time.Time // when the connection began
	first       Identity  // identity of its first event; zero before one has arrived
	firstAt     time.Time // when the first event was read; before that, connectedAt
}

// holdForPeers holds the events from a position on if another node may read the platform. Events that
// are held already stay held.
func (r *runner) holdForPeers(from queuePosition) {
	if r.cfg.Redundancy < 2 || r.store.singleNode() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	// Until an event has come, the connection itself counts as the first one.
	now := time.Now()
	r.connectionHold = connectionHold{connectedAt: now, firstAt: now}
	r.sender.hold(from)
	signal(r.heldSignal)
}

// recordFirstHeld records the first held event of a connection. The caller holds r.mu.
func (r *runner) recordFirstHeld(events []Event) {
	if r.connectionHold.connectedAt.IsZero() || r.connectionHold.first.Valid() {
		return
	}

	for i := range events {
		e := &events[i]
		if e.Value != nil && e.Identity.Valid() {
			r.connectionHold.first, r.connectionHold.firstAt = e.Identity, time.Now()
			return
		}
	}
}

// releaseForPeers releases the events that holdForPeers holds, once it is their turn, until ctx ends.
func (r *runner) releaseForPeers(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.heldSignal:
		}

		for !r.releaseInOrder(ctx) {
			if !retry.Sleep(ctx, peerPoll) {
				return
			}
		}
	}
}

// releaseInOrder releases the held events if the other running nodes have sent the events before them,
// or after orderTimeout. It reports whether it released them.
func (r *runner) releaseInOrder(ctx context.Context) bool {
	r.mu.Lock()
	held := r.connectionHold
	r.mu.Unlock()

	// A node that hangs must not stop this one for longer.
	if time.Since(held.connectedAt) < r.orderTimeout && !r.peersHaveSentBefore(ctx, held) {
		return false
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.connectionHold != held { // a new connection, or its first event has arrived
		return false
	}

	r.connectionHold = connectionHold{}
	r.sender.release()
	return true
}

// peersHaveSentBefore reports whether every other running node has sent the events before the first held one.
func (r *runner) peersHaveSentBefore(ctx context.Context, held connectionHold) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()

	peers, err := r.store.peers(ctx, r.cfg.Name, r.node, r.leaseTime)
	if err != nil {
		r.log.Warn("reading the progress of a feed's other node failed", "error", err)
		return false
	}

	for _, p := range peers {
		if !p.hasSentBefore(held) {
			return false
		}
	}

	return true
}

// hasSentBefore reports whether the other node has sent the events before those that this one holds. It has if it
// sent the first of them or a later one, or if it sent everything that it had read peerDelay after the first of them
// and holds no earlier events itself.
func (p *peerProgress) hasSentBefore(held connectionHold) bool {
	if atLeast(p.Sent, held.first) {
		return true
	}
	// Its status is from behind the first event, and whatever it had read before is in it.
	isFromBehind := time.Since(held.firstAt) > p.age+peerDelay
	return isFromBehind && !p.Pending && (!p.First.Valid() || atLeast(p.First, held.first))
}

// atLeast reports whether a is b or a later event of the same run.
func atLeast(a, b Identity) bool {
	return b.Valid() && a.Run == b.Run && a.Number >= b.Number
}

// progress returns this node's progress for the other nodes.
func (r *runner) progress() nodeProgress {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, pending := r.sender.progress()
	return nodeProgress{Sent: sent, Pending: pending, First: r.connectionHold.first}
}
