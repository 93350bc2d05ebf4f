package origination

import (
	"context"
	"errors"
	"time"
)

const (
	beatsInLease = 4
	checkEvery   = 500 * time.Millisecond // for calls that another node was asked to cancel
	purgeEvery   = 10 * time.Minute
)

// keepHouse says that the node lives, takes over the calls of dead nodes and
// cancels what other nodes were asked to cancel, until ctx ends. What fails is
// tried again at the next turn.
func (s *Service) keepHouse(ctx context.Context) {
	beat, check := time.NewTicker(s.cfg.Lease/beatsInLease), time.NewTicker(checkEvery)
	defer beat.Stop()
	defer check.Stop()
	for {
		var err error
		var doing string
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
			doing, err = "following other nodes", s.bounded(ctx, s.beat)
		case <-check.C:
			doing, err = "cancelling calls", s.bounded(ctx, s.cancelRequested)
		}
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, doing+" failed, it is tried again", "error", err)
		}
	}
}

// keepPurging forgets old calls, until ctx ends. It may take its time, which
// the sign of life may not.
func (s *Service) keepPurging(ctx context.Context) {
	purge := time.NewTicker(purgeEvery)
	defer purge.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-purge.C:
			s.book.sweep(now)
			if err := s.rows.purge(ctx, now.Add(-s.cfg.Retention)); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "purging calls failed, it is tried again", "error", err)
			}
		}
	}
}

// bounded keeps one job from holding up the sign of life.
func (s *Service) bounded(ctx context.Context, job func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease/beatsInLease)
	defer cancel()
	return job(ctx)
}

func (s *Service) beat(ctx context.Context) error {
	known := s.book.known()
	if err := s.rows.beat(ctx, s.cfg.Lease); err != nil {
		return err
	}
	if s.book.wasOvertaken() {
		own, err := s.rows.own(ctx)
		if err != nil {
			s.book.overtake()
			return err
		}
		s.book.keep(own, known)
	}
	if s.cfg.Alone {
		return nil
	}
	open, err := s.takeOver(ctx)
	if err != nil {
		return err
	}
	for _, call := range adopt(ctx, s.driver, open) {
		s.book.report(Progress{CallID: call.CallID, State: Ended, Cause: CauseLost, At: time.Now()})
	}
	return nil
}

func (s *Service) cancelRequested(ctx context.Context) error {
	calls, err := s.rows.toCancel(ctx)
	if err != nil {
		return err
	}
	var failed []error
	for _, callID := range calls {
		if !s.book.cancelling(callID) {
			continue
		}
		if err := s.cancelHere(ctx, callID); err != nil {
			s.book.notCancelled(callID)
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}
