package origination

import (
	"context"
	"time"
)

const (
	renewalsPerLease    = 4
	cancelCheckInterval = 500 * time.Millisecond // interval of the check for cancel requests of other nodes
)

// runNodeLease renews the node's lease, takes over the calls of nodes whose lease has expired, and
// cancels this node's calls whose cancellation was requested on other nodes, until ctx ends. Failures
// are retried at the next tick.
func (s *Service) runNodeLease(ctx context.Context) {
	checkInterval := cancelCheckInterval
	if s.cfg.SingleNode { // what is left of a process that ended
		checkInterval *= 10
	}

	renew, check := time.NewTicker(s.cfg.Lease/renewalsPerLease), time.NewTicker(checkInterval)
	defer renew.Stop()
	defer check.Stop()

	for {
		var err error
		var doing string
		select {
		case <-ctx.Done():
			return
		case <-renew.C:
			doing, err = "renewing the node's lease", s.runWithinLease(ctx, s.renewLease)
		case <-check.C:
			doing, err = "cancelling calls for other nodes", s.runWithinLease(ctx, s.cancelRequested)
		}

		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, doing+" failed, will retry", "error", err)
		}
	}
}

// runWithinLease runs a job with a timeout, so that it does not delay the lease's renewal.
func (s *Service) runWithinLease(ctx context.Context, job func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease/renewalsPerLease)
	defer cancel()
	return job(ctx)
}

// renewLease renews the lease, and takes over the calls of nodes without one. Where there is no other
// node, nobody asks for the lease.
func (s *Service) renewLease(ctx context.Context) error {
	if s.cfg.SingleNode {
		return nil
	}

	held, err := s.rows.extendLease(ctx, s.cfg.Lease)
	if err == nil && !held {
		s.lapsedAt = time.Now()
		err = s.rows.acquireLease(ctx, s.cfg.Lease)
	}
	if err == nil && !s.lapsedAt.IsZero() {
		err = s.dropLost(ctx)
	}
	if err != nil {
		return err
	}

	// After the own lease: what a node without one takes over is taken from it in turn.
	open, err := s.takeOver(ctx)
	if err != nil {
		return err
	}

	for _, call := range adoptCalls(ctx, s.driver, open) {
		s.calls.report(Progress{CallID: call.CallID, State: Ended, Cause: CauseLost, At: time.Now()})
	}

	return nil
}

// dropLost removes the calls that other nodes took over while this one had no lease. It does so for one lease more:
// another node may have begun to take them over before it could see the new one.
func (s *Service) dropLost(ctx context.Context) error {
	listed := s.calls.listStored() // before the rows: a call that is stored after them is not lost
	ids, err := s.rows.listLive(ctx)
	if err != nil {
		return err
	}

	own := make(map[string]bool, len(ids))
	for _, id := range ids {
		own[id] = true
	}

	lost := s.calls.dropLost(listed, own)
	if lost > 0 {
		s.log.WarnContext(ctx, "calls lost to other nodes while the node had no lease", "calls", lost)
	}
	if time.Since(s.lapsedAt) > s.cfg.Lease {
		s.lapsedAt = time.Time{}
	}

	return nil
}
