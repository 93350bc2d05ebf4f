package selfcheck

import (
	"context"
	"time"
)

// skewLimit is below the five seconds that tokens of another node may be ahead.
const skewLimit = 2 * time.Second

// CompareClock returns a function for Dependency.Clock that reads another clock with read.
func CompareClock(
	read func(context.Context) (time.Time, error)) func(context.Context) (ahead time.Duration, err error) {
	return func(ctx context.Context) (time.Duration, error) {
		sent := time.Now()
		other, err := read(ctx)
		return clockOffset(sent, other, time.Now()), err
	}
}

// clockOffset returns the minimum by which a clock that was read between sent and
// received is ahead of ours; negative: behind.
func clockOffset(sent, read, received time.Time) time.Duration {
	switch {
	case read.After(received):
		return read.Sub(received)
	case read.Before(sent):
		return read.Sub(sent)
	}
	return 0
}

// stepDetector detects that the wall clock was set: it then differs from the monotonic
// clock.
type stepDetector struct {
	lastWall    time.Time // without its monotonic reading; zero: no reading yet
	lastElapsed time.Duration
}

// observe returns the amount by which the clock was set since the last call. elapsed is
// read from the monotonic clock.
func (d *stepDetector) observe(wall time.Time, elapsed time.Duration) (change time.Duration) {
	if !d.lastWall.IsZero() {
		change = wall.Sub(d.lastWall) - (elapsed - d.lastElapsed)
	}
	d.lastWall, d.lastElapsed = wall, elapsed
	return change
}

// checkClockStep logs a clock that was set by more than it drifts.
func (c *Checker) checkClockStep(wall time.Time, elapsed time.Duration) {
	change := c.clockSteps.observe(wall, elapsed)
	if change.Abs() >= skewLimit {
		c.log.Warn("this machine's clock was set: let time synchronisation slew it", "by", change)
	}
}
