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

// progress is the status that a node publishes to keep the events of two nodes in order.
type progress struct {
	Sent    Identity `json:"sent"`    // identity of the last event that Kafka has
	Pending bool     `json:"pending"` // Kafka does not have all events that may be sent
	First   Identity `json:"first"`   // identity of the first held event of the connection; zero if no events are held
}

// peer is the progress of another node, and its age.
type peer struct {
	progress
	age time.Duration
}

// beginning is the start of a connection whose events are held because other nodes may have to send
// earlier ones. The zero value means that no events are held.
type beginning struct {
	at      time.Time // when it began
	first   Identity  // identity of its first event; zero before one has arrived
	firstAt time.Time // time at which the first event was read
}

// holdForPeers holds the events from a position on if another node may read the platform. Events that
// are held already stay held.
func (r *runner) holdForPeers(from position) {
	if r.cfg.Redundancy < 2 || r.store.alone() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.begun = beginning{at: now, firstAt: now}
	r.sender.hold(from)
	signal(r.holds)
}

// noteFirst records the first held event of a connection. The caller holds r.mu.
func (r *runner) noteFirst(events []Event) {
	if r.begun.at.IsZero() || r.begun.first.Valid() {
		return
	}
	for i := range events {
		if e := &events[i]; e.Value != nil && e.Identity.Valid() {
			r.begun.first, r.begun.firstAt = e.Identity, time.Now()
			return
		}
	}
}

// keepOrder releases held events in order until ctx ends.
func (r *runner) keepOrder(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.holds:
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
	begun := r.begun
	r.mu.Unlock()
	if time.Since(begun.at) < r.orderTimeout && !r.peersAreAhead(ctx, begun) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != begun { // a new connection, or its first event has arrived
		return false
	}
	r.begun = beginning{}
	r.sender.release()
	return true
}

// peersAreAhead reports whether every other running node has sent the events before a beginning.
func (r *runner) peersAreAhead(ctx context.Context, b beginning) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	peers, err := r.store.peers(ctx, r.cfg.Name, r.node, r.leaseTime)
	if err != nil {
		r.log.Warn("reading the progress of a feed's other node failed", "error", err)
		return false
	}
	for _, p := range peers {
		if !p.ahead(b) {
			return false
		}
	}
	return true
}

// ahead reports whether a node has sent the events before b. It has if it sent the first event of b or
// a later one, or if it sent everything that it had read peerDelay after b's first event and holds no
// earlier events itself.
func (p *peer) ahead(b beginning) bool {
	if atLeast(p.Sent, b.first) {
		return true
	}
	current := time.Since(b.firstAt) > p.age+peerDelay
	return current && !p.Pending && (!p.First.Valid() || atLeast(p.First, b.first))
}

// atLeast reports whether a is b or a later event of the same run.
func atLeast(a, b Identity) bool {
	return b.Valid() && a.Run == b.Run && a.Number >= b.Number
}

// progress returns this node's progress for the other nodes.
func (r *runner) progress() progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, pending := r.sender.progress()
	return progress{Sent: sent, Pending: pending, First: r.begun.first}
}
