package load

import (
	"context"
	"time"
)

// Clock is the wall clock at its creation, advanced by the monotonic clock. Publishers and
// subscribers of a run share one, so that setting the system's clock does not affect latencies.
type Clock struct{ startedAt time.Time }

// NewClock returns a clock that starts at the current time.
func NewClock() Clock { return Clock{time.Now()} }

// Now returns the time on the clock.
func (c Clock) Now() time.Time { return c.startedAt.Add(time.Since(c.startedAt)) }

// SleepUntil waits until t or the end of ctx.
func SleepUntil(ctx context.Context, t time.Time) {
	wait := time.Until(t)
	if wait <= 0 {
		return
	}

	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
