package origination

import (
	"context"
	"sync"
	"time"

	"trunkline/internal/fault"
)

const (
	settleFor   = 5 * time.Second // at the end
	settleEvery = 10 * time.Millisecond
)

// Adopter is a Driver that can take calls over from a process that died while
// this one is running. Of a Driver that cannot, they have ended with their
// process.
type Adopter interface {
	// Adopt goes on with those of the calls that the platform still has,
	// reporting as in Follow, and returns the rest.
	Adopt(ctx context.Context, open []Open) (rest []Open)
}

// Run follows calls, stores and announces how far they are, until ctx ends;
// then it lets the driver finish and waits, a bounded while, until everything
// is stored and announced. What is still open then is another node's, or this
// one's next life's.
func (s *Service) Run(ctx context.Context) error {
	open, err := s.begin(ctx)
	if err != nil {
		return err
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var jobs sync.WaitGroup
	jobs.Go(func() { s.book.keepWriting(work) })
	jobs.Go(func() { s.book.keepAnnouncing(work) })
	jobs.Go(func() { s.keepHouse(work) })
	jobs.Go(func() { s.keepPurging(work) })
	s.running.Store(true)
	err = s.driver.Follow(ctx, open, s.book.report)
	s.running.Store(false)
	s.settle()
	stop()
	jobs.Wait()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	if left := s.rows.leave(leaving); left != nil {
		s.log.WarnContext(ctx, "this node's calls are taken over only when its lease is over", "error", left)
	}
	if ctx.Err() == nil {
		return fault.Internal(err, "The driver has stopped following calls")
	}
	return nil
}

// begin takes what dead nodes have left.
func (s *Service) begin(ctx context.Context) ([]Open, error) {
	if err := s.rows.beat(ctx, s.cfg.Lease); err != nil {
		return nil, err
	}
	if s.cfg.Alone {
		if err := s.rows.othersAreDead(ctx); err != nil {
			return nil, err
		}
	}
	return s.takeOver(ctx)
}

// takeOver makes the calls of dead nodes this one's, and returns those that
// have not ended.
func (s *Service) takeOver(ctx context.Context) ([]Open, error) {
	taken, err := s.rows.takeOver(ctx)
	if err != nil || len(taken) == 0 {
		return nil, err
	}
	s.log.InfoContext(ctx, "taking over calls", "calls", len(taken))
	s.book.adopt(taken)
	var open []Open
	for i := range taken {
		if r := &taken[i]; r.State != Ended {
			open = append(open, Open{Order: r.Order, CallID: r.Call.ID, State: r.State, Since: r.Updated})
		}
	}
	return open, nil
}

// settle waits until the book is settled, or for too long.
func (s *Service) settle() {
	late := time.After(settleFor)
	for !s.book.settled() {
		select {
		case <-late:
			s.log.Warn("ending while calls are not stored or announced; the next node does it")
			return
		case <-time.After(settleEvery):
		}
	}
}
