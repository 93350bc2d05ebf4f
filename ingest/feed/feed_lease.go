package feed

import (
	"context"
	"time"

	"trunkline/internal/retry"
)

const (
	// A lease lasts leaseTime and is renewed every renewEvery. After a node is killed, another node
	// starts reading within their sum.
	leaseTime  = 3500 * time.Millisecond
	renewEvery = time.Second
	// storeTimeout is the timeout of a statement on leases and status.
	storeTimeout = time.Second
	// yieldAfter is the time without a connection after which a node releases its lease, so that
	// another node can try.
	yieldAfter = time.Minute
)

// keepLease acquires and renews the lease, and reads the platform while this node has it, until ctx
// ends.
func (r *runner) keepLease(ctx context.Context) {
	var stopReading func()
	for {
		held := r.renewLease(ctx)
		if held && r.isDisconnectedLong() {
			r.log.Warn("lease released: no connection to the platform")
			r.releaseLease(ctx)
			held = false
		}

		switch {
		case held && stopReading == nil:
			stopReading = r.startReading(ctx)
		case !held && stopReading != nil:
			stopReading()
			stopReading = nil
			r.setState(StateStandby, nil)
		}

		wait := renewEvery
		// the lease was released: let other nodes take it first
		if !held && stopReading == nil && r.leaseSlot < 0 && r.leaseUntil.After(time.Now()) {
			wait = time.Until(r.leaseUntil)
		}
		if !retry.Sleep(ctx, wait) {
			break
		}
	}

	if stopReading != nil {
		stopReading()
	}

	r.releaseLease(context.WithoutCancel(ctx))
}

// startReading starts reading and returns a function that stops it.
func (r *runner) startReading(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.runSessions(ctx)
	}()

	return func() {
		cancel()
		<-done
	}
}

// renewLease takes or renews a lease and reports whether this node may read.
func (r *runner) renewLease(ctx context.Context) bool {
	// SQLite is of one node: nobody else can read the platform.
	if r.store.singleNode() {
		r.leaseSlot = 0
		r.isLeader.Store(true)
		return true
	}

	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()

	// The time before the request: the lease ends no later for this node than in the database.
	began := time.Now()
	slots := r.cfg.Redundancy
	if r.lacksNumbers.Load() { // second copies of events could not be recognized
		slots = 1
	}

	for slot := range slots {
		acquired, err := r.store.acquireLease(ctx, r.cfg.Name, slot, r.node, r.leaseTime)
		switch {
		case err != nil:
			r.log.Warn("lease renewal failed", "error", err)
			// If events have identities, two nodes may read at the same time.
			return r.leaseSlot >= 0 && (time.Now().Before(r.leaseUntil) || r.hasNumbers.Load())
		case acquired:
			r.setSlot(ctx, slot, began)
			return true
		// This node's lease has ended, and another node has it.
		case slot == r.leaseSlot:
			r.leaseSlot = -1
		}
	}

	r.leaseSlot = -1
	r.isLeader.Store(false)
	return false
}

// setSlot records the lease of a slot. The node with the first slot leads: when it gets the slot it
// resyncs, because the node before may not have stored all differences.
func (r *runner) setSlot(ctx context.Context, slot int, at time.Time) {
	if r.leaseSlot > slot {
		if err := r.store.releaseLeases(ctx, r.cfg.Name, r.node, slot); err != nil {
			r.log.Warn("release of the other lease failed", "error", err)
		}
		signal(r.resyncRequests)
	}
	r.leaseSlot, r.leaseUntil = slot, at.Add(r.leaseTime)
	r.isLeader.Store(slot == 0)
}

// isDisconnectedLong reports whether there has been no connection for yieldAfter.
func (r *runner) isDisconnectedLong() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.store.singleNode() && !r.disconnectedSince.IsZero() && time.Since(r.disconnectedSince) > yieldAfter
}

// releaseLease releases the lease and prevents a new one for some time.
func (r *runner) releaseLease(ctx context.Context) {
	if r.store.singleNode() || r.leaseSlot < 0 {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()

	if err := r.store.releaseLeases(ctx, r.cfg.Name, r.node, -1); err != nil {
		r.log.Warn("lease release failed", "error", err)
	}

	r.leaseSlot, r.leaseUntil = -1, time.Now().Add(2*r.leaseTime)
	r.isLeader.Store(false)
}
