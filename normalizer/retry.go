package normalizer

import (
	"context"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// How long a worker waits before it tries again: at first, and at most.
const (
	firstWait   = 50 * time.Millisecond
	longestWait = 5 * time.Second
)

// retry calls do until it does not fail with fault.KindUnavailable, with
// growing waits between. It returns ctx's error when ctx ends.
func (w *partitionWorker) retry(ctx context.Context, doing string, do func() error) error {
	backoff := retry.Backoff{First: firstWait, Max: longestWait}
	for {
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
		wait := backoff.Next()
		w.metrics.retries.Inc()
		w.log.Warn("partition processing paused", "doing", doing, "topic", w.raw, "partition", w.Partition, "wait", wait, "error", err)
		if !retry.Sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// unavailable reports whether trying again later may help.
func unavailable(err error) bool { return fault.KindOf(err) == fault.KindUnavailable }
