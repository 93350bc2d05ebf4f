package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

// skewLimit is below what tokens of another node are forgiven: five seconds.
const skewLimit = 2 * time.Second

// between is how far a clock that was read between asked and answered is ahead
// of ours, less what asking may account for; negative: behind.
func between(asked, read, answered time.Time) time.Duration {
	switch {
	case read.After(answered):
		return read.Sub(answered)
	case read.Before(asked):
		return read.Sub(asked)
	}
	return 0
}

func databaseSkew(ctx context.Context, db *sqldb.DB) (time.Duration, error) {
	var read time.Time
	asked := time.Now()
	if err := db.QueryRowContext(ctx, `SELECT clock_timestamp()`).Scan(&read); err != nil {
		return 0, fmt.Errorf("asking the database for the time: %w", err)
	}
	return between(asked, read, time.Now()), nil
}

func (a *App) redisSkew(ctx context.Context) (time.Duration, error) {
	asked := time.Now()
	read, err := a.redis.Time(ctx).Result()
	if err != nil {
		return 0, fmt.Errorf("asking Redis for the time: %w", err)
	}
	return between(asked, read, time.Now()), nil
}

// kafkaSkew is by the stamps of what this node produced; nothing is known until
// it has.
func kafkaSkew(c *kafka.Cluster) (time.Duration, error) {
	ahead, at := c.ClockAhead()
	if at.IsZero() {
		return 0, errors.New("no broker has told its time yet")
	}
	return ahead, nil
}

// stepMeter notices that the wall clock was set: it then moved otherwise than
// the monotonic one.
type stepMeter struct {
	wall    time.Time // without its monotonic reading; zero: not asked yet
	elapsed time.Duration
}

// step is by how much the clock was set since the last call. elapsed is by the
// monotonic clock, from any beginning.
func (m *stepMeter) step(wall time.Time, elapsed time.Duration) (by time.Duration) {
	if !m.wall.IsZero() {
		by = wall.Sub(m.wall) - (elapsed - m.elapsed)
	}
	m.wall, m.elapsed = wall, elapsed
	return by
}

// checkStep tells of a clock that was set by more than it drifts.
func (w *watch) checkStep(wall time.Time, elapsed time.Duration) {
	if by := w.steps.step(wall, elapsed); by.Abs() >= skewLimit {
		w.log.Warn("this machine's clock was set: let time synchronisation slew it", "by", by)
	}
}
