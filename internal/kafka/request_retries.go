package kafka

import (
	"context"
	"time"

	"trunkline/internal/retry"
)

// withRetries calls f up to five times while its error may be temporary: the brokers
// of a cluster do not learn of new topics and leaders at the same time. It is for
// requests with a waiting caller.
func withRetries(ctx context.Context, f func() error) error {
	backoff := retry.Backoff{First: 50 * time.Millisecond, Max: 500 * time.Millisecond}
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || !retriable(err) || attempt == 5 || !backoff.Wait(ctx) {
			return err
		}
	}
}
