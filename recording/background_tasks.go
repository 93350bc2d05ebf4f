package recording

import (
	"context"
	"time"
)

const (
	completeInterval = time.Second      // between looks for records of calls
	announceInterval = 5 * time.Second  // for recordings that were not announced because of a crash
	announceLease    = 30 * time.Second // time after which an announcement is retried
	announceBatch    = 50               // recordings leased at once
	expiryInterval   = time.Minute
	sweepInterval    = 6 * time.Hour
	orphanAge        = 24 * time.Hour
)

// Run announces stored recordings, completes them from the records of their calls, stores those of calls that a
// process left, and deletes expired ones and objects without a row, until ctx ends. Failures are logged and retried.
func (s *Service) Run(ctx context.Context) error {
	announce, complete, sweep := time.NewTicker(announceInterval), time.NewTicker(completeInterval), time.NewTicker(
		sweepInterval)
	defer announce.Stop()
	defer complete.Stop()

	expire := time.NewTicker(expiryInterval)
	defer expire.Stop()
	defer sweep.Stop()
	defer s.seals.roots.Wipe()

	s.logFailure(ctx, "storing recordings of calls that a process left", s.storeAbandoned(ctx))
	changes := s.rows.db.WatchChanges()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.wakeAnnouncer:
			s.logFailure(ctx, "announcing recordings", s.announce(ctx))
		case <-announce.C:
			s.logFailure(ctx, "announcing recordings", s.announce(ctx))
		case <-complete.C:
			s.logFailure(ctx, "looking for the records of recorded calls", s.completeChanged(ctx, changes))
		case <-expire.C:
			s.logFailure(ctx, "storing recordings of calls that a process left", s.storeAbandoned(ctx))
			s.logFailure(ctx, "deleting recordings whose retention has ended", s.DeleteExpired(ctx, time.Now()))
		case <-sweep.C:
			s.logFailure(ctx, "sweeping the recordings' store", s.Sweep(ctx, time.Now().Add(-orphanAge)))
		}
	}
}

func (s *Service) logFailure(ctx context.Context, operation string, err error) {
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, operation+" failed, retrying", "error", err)
	}
}
