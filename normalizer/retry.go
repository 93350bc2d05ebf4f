package normalizer

import (
	"context"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// partitionBackoff is the pause of a worker before a retry.
var partitionBackoff = retry.Backoff{First: 50 * time.Millisecond, Max: 5 * time.Second}

// retry repeats call, with growing pauses, while it returns fault.KindUnavailable. It
// returns the error of ctx when ctx ends.
func (w *partitionWorker) retry(ctx context.Context, action string, call func() error) error {
	return retry.Do(ctx, partitionBackoff, fault.IsUnavailable, func(err error, wait time.Duration) {
		w.metrics.retries.Inc()
		w.log.Warn("partition processing paused", "doing", action, "topic", w.rawTopic, "partition", w.Partition, "wait", wait, "error", err)
	}, call)
}
