package feed

import (
	"context"
	"time"

	"trunkline/internal/retry"
)

const (
	// orderTimeout bounds how long a node holds its events for the other one.
	orderTimeout = 5 * time.Second
	peerPoll     = 200 * time.Millisecond
	// peerDelay is within what an event that one node has read is in the progress of
	// the other one: read there too, and the progress stored.
	peerDelay = storeTimeout + 500*time.Millisecond
)

// progress is what a node publishes for the order of two nodes that read one
// platform.
type progress struct {
	Sent    Identity `json:"sent"`    // of the last event that Kafka has
	Pending bool     `json:"pending"` // Kafka does not have all events that may be sent
	First   Identity `json:"first"`   // of the first event of the connection; zero: none, or not held
}

// peer is the progress of another node, and its age.
type peer struct {
	progress
	age time.Duration
}

// beginning is a connection whose events are held: other nodes may have to send
// earlier ones. The zero value: nothing is held.
type beginning struct {
	at      time.Time // when it began
	first   Identity  // of its first event; zero: there was none yet
	firstAt time.Time // when that was read
}

// holdForPeers holds the events from a position on, where another node may read the
// platform. Those of an earlier beginning that are held still stay so.
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

// noteFirst notes the first event of a connection that is held. The caller has r.mu.
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

// keepOrder releases the events that holdForPeers has held, until ctx ends.
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

// releaseInOrder releases the held events when the nodes that are alive have sent
// those before them, and after orderTimeout. It returns whether none are held.
func (r *runner) releaseInOrder(ctx context.Context) bool {
	r.mu.Lock()
	begun := r.begun
	r.mu.Unlock()
	if time.Since(begun.at) < r.orderTimeout && !r.peersAreAhead(ctx, begun) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != begun { // another connection, or its first event
		return false
	}
	r.begun = beginning{}
	r.sender.release()
	return true
}

// peersAreAhead reports whether every other node that is alive has sent what is
// before a beginning.
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

// ahead reports whether a node has sent what is before a beginning: the same event or
// a later one; or all that it had read some time after the beginning, where it does
// not wait for an earlier beginning of its own.
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

// progress returns what other nodes have to know of this one.
func (r *runner) progress() progress {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent, pending := r.sender.progress()
	return progress{Sent: sent, Pending: pending, First: r.begun.first}
}
