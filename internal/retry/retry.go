// Package retry provides exponential back-off with jitter, so that clients of a failed
// server do not all reconnect at once, and sleeps and ticks that end with a context.
// It starts no goroutine.
package retry

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"trunkline/internal/fault"
)

// Backoff computes growing waits. It is not safe for concurrent use.
type Backoff struct {
	First, Max time.Duration // of the waits, before jitter
	bound      time.Duration
}

// Next returns the next wait: a random duration between half and all of a bound that
// doubles with every call, from First up to Max.
func (b *Backoff) Next() time.Duration {
	d := max(b.bound, b.First)
	b.bound = min(2*d, b.Max)
	return d/2 + rand.N(d/2+1)
}

// Wait waits for the duration of Next. It returns false if ctx ended first.
func (b *Backoff) Wait(ctx context.Context) bool { return Sleep(ctx, b.Next()) }

// Reset makes the next wait start at First again.
func (b *Backoff) Reset() { b.bound = 0 }

// Started reports whether Next was called since the last Reset.
func (b *Backoff) Started() bool { return b.bound != 0 }

// NewBackendBackoff returns the back-off of a worker whose backend, Kafka or a database,
// is unavailable.
func NewBackendBackoff() Backoff {
	return Backoff{First: 50 * time.Millisecond, Max: 5 * time.Second}
}

// Func calls call until it returns nil or an error other than fault.KindUnavailable. It
// returns that error, prefixed with action, which says what call does. After the end of
// ctx it returns the error of ctx.
type Func func(ctx context.Context, action string, call func() error) error

// WhileUnavailable returns a Func with the waits of NewBackendBackoff. It calls report
// before each of them.
func WhileUnavailable(report func(action string, err error, wait time.Duration)) Func {
	return func(ctx context.Context, action string, call func() error) error {
		backoff := NewBackendBackoff()
		for {
			err := call()
			switch {
			case err == nil:
				return nil
			case ctx.Err() != nil:
				return ctx.Err()
			case !fault.IsUnavailable(err):
				return fmt.Errorf("%s: %w", action, err)
			}

			wait := backoff.Next()
			report(action, err, wait)
			if !Sleep(ctx, wait) {
				return ctx.Err()
			}
		}
	}
}

// Rounds yields the time at once, and again each time that pause has passed since the loop's body
// ended, until ctx ends.
func Rounds(ctx context.Context, pause time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for yield(time.Now()) && Sleep(ctx, pause) {
		}
	}
}

// Ticks yields the time at each tick of interval until ctx ends. It drops ticks while
// the loop's body is behind.
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

// Sleep waits for d. It returns false if ctx ended first, even if d is not positive.
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
