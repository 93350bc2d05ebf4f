package feed

import (
	"context"
	"time"

	"trunkline/internal/retry"
)

const (
	// A lease lasts leaseTime and is renewed every renewEvery: another node begins
	// at most their sum after a node was killed.
	leaseTime    = 3500 * time.Millisecond
	renewEvery   = time.Second
	storeTimeout = time.Second
	// yieldAfter is how long a node tries to connect before it gives another one the
	// opportunity.
	yieldAfter = time.Minute
)

// keepLease reads the platform while this node has a lease, until ctx ends.
func (r *runner) keepLease(ctx context.Context) {
	var stop func()
	for {
		held := r.renewLease(ctx)
		if held && r.failsForLong() {
			r.log.Warn("lease given up: this node cannot connect to the platform")
			r.releaseLease(ctx)
			held = false
		}
		switch {
		case held && stop == nil:
			stop = r.startReading(ctx)
		case !held && stop != nil:
			stop()
			stop = nil
			r.setState(StateStandby, nil)
		}
		wait := renewEvery
		if !held && stop == nil && r.slot < 0 && r.leaseUntil.After(time.Now()) { // given up: others first
			wait = time.Until(r.leaseUntil)
		}
		if !retry.Sleep(ctx, wait) {
			break
		}
	}
	if stop != nil {
		stop()
	}
	r.releaseLease(context.WithoutCancel(ctx))
}

// startReading begins to read and returns a function that ends it.
func (r *runner) startReading(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.read(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// renewLease takes or renews a lease and reports whether this node may read.
func (r *runner) renewLease(ctx context.Context) bool {
	if r.store.alone() {
		r.slot = 0
		r.leads.Store(true)
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	began := time.Now()
	slots := r.cfg.Redundancy
	if r.unnumbered.Load() { // a second copy could not be found out
		slots = 1
	}
	for slot := range slots {
		mine, err := r.store.claim(ctx, r.cfg.Name, slot, r.node, r.leaseTime)
		switch {
		case err != nil:
			r.log.Warn("renewing the lease of a feed failed", "error", err)
			// Where events have identities, two nodes that read do no harm.
			return r.slot >= 0 && (time.Now().Before(r.leaseUntil) || r.numbered.Load())
		case mine:
			r.tookSlot(ctx, slot, began)
			return true
		case slot == r.slot:
			r.slot = -1
		}
	}
	r.slot = -1
	r.leads.Store(false)
	return false
}

// tookSlot notes the lease of a slot. The first slot leads: a node that gets it asks
// the platform for differences that a node before it may have left.
func (r *runner) tookSlot(ctx context.Context, slot int, at time.Time) {
	if r.slot > slot {
		if err := r.store.release(ctx, r.cfg.Name, r.node, slot); err != nil {
			r.log.Warn("giving up the other lease of a feed failed", "error", err)
		}
		signal(r.resyncWanted)
	}
	r.slot, r.leaseUntil = slot, at.Add(r.leaseTime)
	r.leads.Store(slot == 0)
}

// failsForLong reports whether another node should try.
func (r *runner) failsForLong() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.store.alone() && !r.failing.IsZero() && time.Since(r.failing) > yieldAfter
}

// releaseLease gives the lease up and takes none for a while.
func (r *runner) releaseLease(ctx context.Context) {
	if r.store.alone() || r.slot < 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := r.store.release(ctx, r.cfg.Name, r.node, -1); err != nil {
		r.log.Warn("giving up the lease of a feed failed", "error", err)
	}
	r.slot, r.leaseUntil = -1, time.Now().Add(2*r.leaseTime)
	r.leads.Store(false)
}
