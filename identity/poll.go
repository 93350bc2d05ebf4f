package identity

import (
	"context"
	"errors"
	"time"
)

const (
	pollInterval        = 400 * time.Millisecond
	maxPollInterval     = 5 * time.Second // while the database is unavailable
	maintenanceInterval = 10 * time.Minute
	earlyPollsPerSecond = 20              // in addition to Run's
	pollTimeout         = 3 * time.Second // of a request that waits for a poll
	// reloadTimeout is that of Run, which reads what a large change made stale. It is less
	// than maxStaleness, so that a slow reload is tried again before requests are refused.
	reloadTimeout = 8 * time.Second
)

// Run follows changes made by other processes, rotates the signing key and deletes
// expired rows, until ctx ends. While the database is unavailable it retries, and memory
// does not change.
func (s *Service) Run(ctx context.Context) error {
	delay := pollInterval
	timer := time.NewTimer(delay)
	defer timer.Stop()
	checkedExpiry := s.cfg.Now()
	maintenance := time.NewTicker(maintenanceInterval)
	defer maintenance.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-maintenance.C:
			err := s.runMaintenance(ctx)
			if err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "maintenance failed, retrying", "error", err)
			}
		case <-timer.C:
			err := s.pollWithTimeout(ctx)
			checkedExpiry = s.notifyExpiredKeys(checkedExpiry)
			delay = s.nextPollDelay(ctx, err, delay)
			timer.Reset(delay)
		}
	}
}

// notifyExpiredKeys closes the channel of Changed if an API key has expired since last,
// because its channel tokens expire with it. It returns the current time, which the
// caller passes as last to the next call.
func (s *Service) notifyExpiredKeys(last time.Time) time.Time {
	now := s.cfg.Now()
	if s.directory.Load().keyExpiredBetween(last, now) {
		s.changeSignal.closeChannel()
	}
	return now
}

// nextPollDelay returns the time until the next poll. It logs the first of several failed
// polls and the recovery.
func (s *Service) nextPollDelay(ctx context.Context, err error, last time.Duration) time.Duration {
	wasFailing := last > pollInterval
	if err == nil {
		if wasFailing {
			s.log.InfoContext(ctx, "database connection recovered")
		}
		return pollInterval
	}
	if ctx.Err() != nil {
		return last
	}
	if !wasFailing {
		s.log.WarnContext(ctx, "following database changes failed, using the snapshot in memory", "error", err)
	}
	return min(2*last, maxPollInterval)
}

func (s *Service) runMaintenance(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := errors.Join(s.deleteExpired(ctx), s.addresses.deleteExpired(ctx))
	if !s.hasMasterKey() {
		return err
	}
	return errors.Join(s.rotateKeys(ctx), err)
}

func (s *Service) pollWithTimeout(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	return s.poll(ctx)
}

// poll reloads the data that changed in the database since the last poll.
func (s *Service) poll(ctx context.Context) error {
	s.pollMu.Lock()
	defer s.pollMu.Unlock()

	began := s.freshness.begin()
	err := s.changes.Poll(func() error { return s.reload(ctx) })
	if err == nil {
		s.freshness.current(began)
	}
	return err
}

// pollEarly polls before the next poll of Run is due, for a caller with an id, key or
// token that memory does not have. Concurrent calls share one poll. Memory may still be
// stale afterwards: if the database is unavailable, or above the rate limit.
func (s *Service) pollEarly(ctx context.Context) {
	before := s.pollCount.Load()
	s.pollMu.Lock()
	defer s.pollMu.Unlock()
	if s.pollCount.Load() > before || !s.earlyPollLimiter.Allow() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	// reload has counted the error; if it persists, Run logs it.
	_ = s.reload(ctx)
}

// reload reads the revision and the data that changed. Revocations come first: they are few,
// and must not wait for the directory. The caller holds pollMu.
func (s *Service) reload(ctx context.Context) (err error) {
	s.pollCount.Add(1)
	began := s.freshness.begin()
	defer func() {
		if err != nil {
			s.metrics.reloadErrors.Inc()
			return
		}
		s.freshness.current(began)
	}()
	current, err := readRevision(ctx, s.db)
	if err != nil || current == s.loaded {
		return err
	}

	s.freshness.behind(began)
	defer s.changeSignal.closeChannel()
	if current.revocations != s.loaded.revocations {
		if err := s.reloadRevocations(ctx, current.revocations); err != nil {
			return err
		}
		s.loaded.revocations = current.revocations
	}
	if current.directory != s.loaded.directory {
		if err := s.readDirectory(ctx); err != nil {
			return err
		}
		s.loaded.directory = current.directory
	}
	return nil
}

// reloadRevocations reads the revocations, and the users that changed, since the last reload.
func (s *Service) reloadRevocations(ctx context.Context, current int64) error {
	after := s.loaded.revocations
	if current < after { // the database was restored from a backup
		after = 0
	}
	newRevocations, err := readRevocations(ctx, s.db, after)
	if err != nil {
		return err
	}
	changedUsers, err := readUserStates(ctx, s.db, after)
	if err != nil {
		return err
	}
	if after == 0 {
		s.userStates.clear()
	}
	s.userStates.put(changedUsers)
	s.userStates.remove(newRevocations) // they include the ids of deleted users
	s.revoked.add(newRevocations)
	return nil
}
