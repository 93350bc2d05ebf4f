package trunkline

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff computes growing waits with jitter, so that clients of a failed server do
// not all reconnect at once.
type backoff struct {
	first, longest time.Duration // before jitter
	bound          time.Duration
}

// next returns the next wait: a random duration between half and all of a bound that
// doubles with every call, from first up to longest.
func (b *backoff) next() time.Duration {
	d := max(b.bound, b.first)
	b.bound = min(2*d, b.longest)

	return d/2 + rand.N(d/2+1)
}

// reset makes the next wait start at first again.
func (b *backoff) reset() { b.bound = 0 }

// sleep waits for d. It returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
