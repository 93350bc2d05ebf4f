package feed

import (
	"context"
	"time"

	"trunkline/internal/retry"
)

const (
	// orderTimeout is the longest time for which a node holds its events for another one.
	orderTimeout = 5 * time.Second
	peerPoll     = 200 * time.Millisecond
	// peerDelay is the time within which an event that one node has read is part of another node's
	// stored progress.
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
	age time.Duration
}

// heldConnection is a connection whose events are held because other nodes may have to send
// earlier ones. The zero value means that no events are held.
type heldConnection struct {
	connectedAt time.Time // when it began
	first       Identity  // identity of its first event; zero before one has arrived
	firstAt     time.Time // time at which the first event was read
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
	r.heldConnection = heldConnection{connectedAt: now, firstAt: now}
	r.sender.hold(from)
	signal(r.heldSignal)
}

// recordFirstHeld records the first held event of a connection. The caller holds r.mu.
func (r *runner) recordFirstHeld(events []Event) {
	if r.heldConnection.connectedAt.IsZero() || r.heldConnection.first.Valid() {
		return
	}

	for i := range events {
		e := &events[i]
		if e.Value != nil && e.Identity.Valid() {
			r.heldConnection.first, r.heldConnection.firstAt = e.Identity, time.Now()
			return
		}
	}
}

// releaseHeldEvents releases held events in order until ctx ends.
func (r *runner) releaseHeldEvents(ctx context.Context) {
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
	held := r.heldConnection
	r.mu.Unlock()

	// A node that hangs must not stop this one for longer.
	if time.Since(held.connectedAt) < r.orderTimeout && !r.peersHaveSentBefore(ctx, held) {
		return false
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.heldConnection != held { // a new connection, or its first event has arrived
		return false
	}

	r.heldConnection = heldConnection{}
	r.sender.release()
	return true
}

// peersHaveSentBefore reports whether every other running node has sent the events before the first of b.
func (r *runner) peersHaveSentBefore(ctx context.Context, b heldConnection) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()

	peers, err := r.store.peers(ctx, r.cfg.Name, r.node, r.leaseTime)
	if err != nil {
		r.log.Warn("reading the progress of a feed's other node failed", "error", err)
		return false
	}

	for _, p := range peers {
		if !p.hasSentBefore(b) {
			return false
		}
	}

	return true
}

// hasSentBefore reports whether a node has sent the events before b. It has if it sent the first event of b or
// a later one, or if it sent everything that it had read peerDelay after b's first event and holds no
// earlier events itself.
func (p *peerProgress) hasSentBefore(b heldConnection) bool {
	if atLeast(p.Sent, b.first) {
		return true
	}
	// Its status is from behind the first event, and whatever it had read before is in it.
	current := time.Since(b.firstAt) > p.age+peerDelay
	return current && !p.Pending && (!p.First.Valid() || atLeast(p.First, b.first))
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
	return nodeProgress{Sent: sent, Pending: pending, First: r.heldConnection.first}
}
