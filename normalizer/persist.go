package normalizer

import (
	"context"
	"time"
)

// How long a lane waits for what is away: at first, and at most.
const (
	firstWait = 50 * time.Millisecond
	mostWait  = 5 * time.Second
)

// persist does something until it succeeds. It gives up when ctx ends, and on
// an error that time does not heal.
func (l *lane) persist(ctx context.Context, doing string, do func() error) error {
	for wait := firstWait; ; wait = min(2*wait, mostWait) {
		err := do()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !unavailable(err) {
			return err
		}
		l.metrics.retries.Inc()
		l.log.Warn("a lane waits", "doing", doing, "topic", l.raw, "partition", l.Partition, "wait", wait, "err", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
