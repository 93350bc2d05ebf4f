package kafka

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff waits longer each time, with jitter so that many who lost the same
// broker do not come back at once.
type backoff struct {
	first, most time.Duration
	next        time.Duration
}

// sleep waits; false when ctx ended first.
func (b *backoff) sleep(ctx context.Context) bool {
	d := max(b.next, b.first)
	b.next = min(2*d, b.most)
	t := time.NewTimer(d/2 + rand.N(d/2+1))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *backoff) reset() { b.next = 0 }

// severalTries is for questions that a caller waits for: f is tried again a
// few times while that may help. In a cluster brokers learn of new topics and
// leaders one after the other.
func severalTries(ctx context.Context, f func() error) error {
	wait := backoff{first: 50 * time.Millisecond, most: 500 * time.Millisecond}
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || !retriable(err) || attempt == 5 || !wait.sleep(ctx) {
			return err
		}
	}
}

// sleepUntil waits; false when ctx ended first.
func sleepUntil(ctx context.Context, at time.Time) bool {
	d := time.Until(at)
	if d <= 0 {
		return true
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
