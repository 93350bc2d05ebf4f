package normalizer

import (
	"context"
	"time"

	"trunkline/internal/fault"
)

// How long a worker waits before it tries again: at first, and at most.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 5 * time.Second
)

// retry calls do until it does not fail with fault.KindUnavailable, with
// waits between that double. It returns ctx's error when ctx ends.
func (w *partitionWorker) retry(ctx context.Context, doing string, do func() error) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
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
		w.metrics.retries.Inc()
		w.log.Warn("partition processing paused", "doing", doing, "topic", w.raw, "partition", w.Partition, "wait", wait, "error", err)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// unavailable reports whether trying again later may help.
func unavailable(err error) bool { return fault.KindOf(err) == fault.KindUnavailable }
