package identity

import (
	"context"
	"time"

	"trunkline/internal/sqldb"
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

// nextPollDelay returns the time until the next poll. It logs the first of several failed
// polls and the recovery.
func (c *databaseChanges) nextPollDelay(ctx context.Context, err error, last time.Duration) time.Duration {
	wasFailing := last > pollInterval
	if err == nil {
		if wasFailing {
			c.log.InfoContext(ctx, "database connection recovered")
		}
		return pollInterval
	}

	if ctx.Err() != nil {
		return last
	}
	if !wasFailing {
		c.log.WarnContext(ctx, "following database changes failed, using the snapshot in memory", "error", err)
	}

	return min(2*last, maxPollInterval)
}

func (c *databaseChanges) pollWithTimeout(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	return c.poll(ctx)
}

// poll reloads the data that changed in the database since the last poll.
func (c *databaseChanges) poll(ctx context.Context) error {
	c.pollMu.Lock()
	defer c.pollMu.Unlock()

	began := c.freshness.begin()
	err := c.watch.Poll(func() error { return c.reload(ctx) })
	if err == nil {
		c.freshness.current(began)
	}
	return err
}

// pollEarly polls before the next poll of Run is due, for a caller with an id, key or
// token that memory does not have. Concurrent calls share one poll. Memory may still be
// stale afterwards: if the database is unavailable, or above the rate limit.
func (c *databaseChanges) pollEarly(ctx context.Context) {
	before := c.pollCount.Load()
	c.pollMu.Lock()
	defer c.pollMu.Unlock()

	if c.pollCount.Load() > before || !c.earlyPollLimiter.Allow() {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()

	// reload has counted the error; if it persists, Run logs it.
	_ = c.reload(ctx)
}

// reload reads the revision and the data that changed. Revocations come first: they are few,
// and must not wait for the directory. The caller holds pollMu.
func (c *databaseChanges) reload(ctx context.Context) (err error) {
	c.pollCount.Add(1)
	began := c.freshness.begin()
	defer func() {
		if err != nil {
			c.metrics.reloadErrors.Inc()
			return
		}
		c.freshness.current(began)
	}()

	current, err := readRevision(ctx, c.db)
	if err != nil || current == c.loadedRevision {
		return err
	}

	c.freshness.behind(began)
	// Also after an error: what was loaded before it may end connections.
	defer c.signal.notify()

	if current.revocations != c.loadedRevision.revocations {
		after := c.loadedRevision.revocations
		if current.revocations < after { // the database was restored from a backup
			after = 0
		}

		for _, reload := range c.reloadRevocations {
			if err := reload(ctx, after); err != nil {
				return err
			}
		}

		c.loadedRevision.revocations = current.revocations
	}

	if current.directory != c.loadedRevision.directory {
		for _, reload := range c.reloadDirectory {
			if err := reload(ctx); err != nil {
				return err
			}
		}
		c.loadedRevision.directory = current.directory
	}

	return nil
}

// revision has the counters of changes in table identity_revision.
type revision struct{ directory, revocations int64 }

func readRevision(ctx context.Context, db sqldb.Runner) (revision, error) {
	var r revision
	err := db.QueryRowContext(ctx, `SELECT directory, revocations FROM identity_revision`).
		Scan(&r.directory, &r.revocations)
	return r, sqldb.Wrap(err, "reading the revision")
}
