package identity

import (
	"context"
	"errors"
	"time"
)

const (
	followEvery = 400 * time.Millisecond
	followMax   = 5 * time.Second // between attempts while the database is unavailable
	housekeep   = 10 * time.Minute
	earlyPolls  = 20 // per second, in addition to Run's
	pollTimeout = 3 * time.Second
)

// Run follows changes made by other processes, rotates the signing key and deletes
// expired rows, until ctx ends. While the database is unavailable it retries, and memory
// does not change.
func (s *Service) Run(ctx context.Context) error {
	pause := followEvery
	tick := time.NewTimer(pause)
	defer tick.Stop()
	looked := s.cfg.Now()
	chores := time.NewTicker(housekeep)
	defer chores.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-chores.C:
			if err := s.housekeep(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "maintenance failed, retrying", "error", err)
			}
		case <-tick.C:
			err := s.pollWithin(ctx)
			looked = s.followExpiry(looked)
			pause = s.nextPause(ctx, err, pause)
			tick.Reset(pause)
		}
	}
}

// followExpiry closes the channel of Changed if an API key has expired since last: its
// channel tokens end with it. It returns the current time, the last of the next call.
func (s *Service) followExpiry(last time.Time) time.Time {
	now := s.cfg.Now()
	if s.directory.Load().expiresIn(last, now) {
		s.changes.fire()
	}
	return now
}

// nextPause returns the time until the next poll. It logs the first of several failed
// polls and the recovery.
func (s *Service) nextPause(ctx context.Context, err error, last time.Duration) time.Duration {
	wasAway := last > followEvery
	if err == nil {
		if wasAway {
			s.log.InfoContext(ctx, "database connection recovered")
		}
		return followEvery
	}
	if ctx.Err() != nil {
		return last
	}
	if !wasAway {
		s.log.WarnContext(ctx, "following database changes failed, using the snapshot in memory", "error", err)
	}
	return min(2*last, followMax)
}

func (s *Service) housekeep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := errors.Join(s.deleteExpired(ctx), s.addresses.deleteExpired(ctx))
	if !s.hasMasterKey() {
		return err
	}
	return errors.Join(s.rotateKeys(ctx), err)
}

func (s *Service) pollWithin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return s.poll(ctx)
}

// poll reloads stale data.
func (s *Service) poll(ctx context.Context) error {
	s.polling.Lock()
	defer s.polling.Unlock()
	return s.reload(ctx)
}

// catchUp polls now, for a caller with an id, key or token that memory does not have.
// Calls during a poll share the next one. Memory may still be stale afterwards: if the
// database is unavailable, or above the rate limit of early polls.
func (s *Service) catchUp(ctx context.Context) {
	seen := s.polls.Load()
	s.polling.Lock()
	defer s.polling.Unlock()
	if s.polls.Load() > seen || !s.early.Allow() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	// reload has counted the error; if it lasts, Run logs it.
	_ = s.reload(ctx)
}

// reload is called with polling held.
func (s *Service) reload(ctx context.Context) (err error) {
	s.polls.Add(1)
	defer func() {
		if err != nil {
			s.metrics.reloadErrors.Inc()
		}
	}()
	now, err := readRevision(ctx, s.db)
	if err != nil || now == s.loaded {
		return err
	}
	if now.directory != s.loaded.directory {
		directory, err := s.readDirectory(ctx)
		if err != nil {
			return err
		}
		s.directory.Store(directory)
		s.loaded.directory = now.directory
	}
	if now.revocations != s.loaded.revocations {
		after := s.loaded.revocations
		if now.revocations < after { // the database was restored from a backup
			after = 0
		}
		more, err := readRevocations(ctx, s.db, after)
		if err != nil {
			return err
		}
		changed, err := readUserStates(ctx, s.db, after)
		if err != nil {
			return err
		}
		if after == 0 {
			s.known.clear()
		}
		s.known.put(changed)
		s.known.remove(more) // ids of deleted users, among others
		s.revoked.add(more)
		s.loaded.revocations = now.revocations
	}
	s.changes.fire()
	return nil
}
