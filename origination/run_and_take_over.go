package origination

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/fault"
)

const (
	settleTimeout      = 5 * time.Second // limit at shutdown
	settlePollInterval = 10 * time.Millisecond
)

// Adopter is a Driver that can take over the calls of a process that died while this one is running.
// With other drivers, calls end with their process.
type Adopter interface {
	// Adopt follows those of the calls that the platform still has, with reports to Follow's callback,
	// and returns the rest.
	Adopt(ctx context.Context, open []OpenCall) (rest []OpenCall)
}

// Run follows calls, and stores and publishes their progress, until ctx ends. It then waits for the
// driver, and at most settleTimeout until everything is stored and published. Calls that are still open
// are taken over by another node, or by this node's next start.
func (s *Service) Run(ctx context.Context) error {
	open, err := s.takeOverAtStart(ctx)
	if err != nil {
		return err
	}

	// The lease is renewed after ctx, too, until everything is settled.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()

	var jobs sync.WaitGroup
	jobs.Go(func() { s.runNodeLease(work) })
	jobs.Go(func() { s.runPurge(work) })

	s.running.Store(true)
	err = s.driver.Follow(ctx, open, s.calls.report)
	s.running.Store(false)

	s.awaitSettled()
	stop()
	s.calls.close()
	jobs.Wait()

	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()

	releaseErr := s.rows.releaseLease(leaving)
	if releaseErr != nil {
		s.log.WarnContext(ctx, "releasing the node's lease failed: its calls are taken over when it expires",
			"error", releaseErr)
	}

	if ctx.Err() == nil {
		return fault.Internal(err, "The driver has stopped following calls")
	}

	return nil
}

// Ready reports whether orders are accepted: Run has started and not ended.
func (s *Service) Ready() bool { return s.running.Load() }

// takeOverAtStart acquires the lease, and takes over the calls of nodes without one.
func (s *Service) takeOverAtStart(ctx context.Context) ([]OpenCall, error) {
	if err := s.rows.acquireLease(ctx, s.cfg.Lease); err != nil {
		return nil, err
	}
	if s.cfg.SingleNode {
		if err := s.rows.expireOtherLeases(ctx); err != nil {
			return nil, err
		}
	}
	return s.takeOver(ctx)
}

// takeOver takes over the calls of nodes without a lease, and returns those that
// have not ended.
func (s *Service) takeOver(ctx context.Context) ([]OpenCall, error) {
	taken, err := s.rows.takeOverExpired(ctx)
	if err != nil || len(taken) == 0 {
		return nil, err
	}

	s.log.InfoContext(ctx, "calls taken over", "calls", len(taken))
	var open []OpenCall
	for i := range taken {
		r := &taken[i]
		if r.State == Ended {
			s.admission.Release(r.Order.ID) // this node may have it from before it lost the call
			continue
		}
		s.admission.AddTakenOver(Slot{r.Order.ID, r.AccountID, r.UserID})
		open = append(open, OpenCall{Order: r.Order, CallID: r.Call.ID, State: r.State, Since: r.Updated})
	}

	// After their slots: from here on a report may end a call.
	s.calls.addAdopted(taken)
	return open, nil
}

// awaitSettled waits until the callStore is settled, for at most settleTimeout.
func (s *Service) awaitSettled() {
	late := time.After(settleTimeout)
	for !s.calls.settled() {
		select {
		case <-late:
			s.log.Warn("calls not stored or published at shutdown: the next node does it")
			return
		case <-time.After(settlePollInterval):
		}
	}
}
