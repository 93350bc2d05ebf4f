// Package retry has the waits of loops: exponential back-off with jitter, so that
// clients that lost the same server do not all reconnect at once, sleeps and ticks
// that end with a context. It starts no goroutine.
package retry

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"
)

// Backoff computes growing waits. It is not safe for concurrent use.
type Backoff struct {
	First, Max time.Duration // of a wait, before jitter
	bound      time.Duration
}

// Next returns the next wait: between half and all of a time that doubles with
// every call, from First up to Max.
func (b *Backoff) Next() time.Duration {
	d := max(b.bound, b.First)
	b.bound = min(2*d, b.Max)
	return d/2 + rand.N(d/2+1)
}

// Wait waits for the duration of Next. It returns false if ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Reset makes the next wait begin at First again.
func (b *Backoff) Reset() { b.bound = 0 }

// Started reports whether there was a wait since the last Reset.
func (b *Backoff) Started() bool { return b.bound != 0 }

// Do calls do until it succeeds or fails with an error that is not temporary, which
// it returns. Before each wait it reports the error and the wait's duration. Once
// ctx has ended it returns ctx's error.
func Do(ctx context.Context, b Backoff, temporary func(error) bool, report func(err error, wait time.Duration), do func() error) error {
	for {
		err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !temporary(err):
			return err
		}
		wait := b.Next()
		report(err, wait)
		if !Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// Ticks yields the time at each tick of interval until ctx ends. Ticks are dropped
// while the loop's body is behind.
func Ticks(ctx context.Context, interval time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}

// Sleep waits for d. It returns false when ctx ended first, also where d is
// not positive.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
