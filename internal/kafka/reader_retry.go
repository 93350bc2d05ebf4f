package kafka

import (
	"context"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
)

// errLeaderBehind is the error of a leader that does not have an offset of the log
// yet.
var errLeaderBehind = fmt.Errorf("leader does not know the offset yet: %w", kafkago.UnknownLeaderEpoch)

// handleError counts an error and waits before the retry; it returns an error if a retry is
// useless.
func (r *Reader) handleError(ctx context.Context, err error) error {
	if staleLeader(err) {
		r.cluster.leaders.markStale(r.prefixedTopic, r.partition, r.leader)
	}

	r.cluster.metrics.countError("fetch", reasonLabel(err))
	if !retriable(err) {
		return asFault(err, "reading from Kafka")
	}

	if !r.failing {
		r.failing = true
		r.cluster.log.Warn("reading from Kafka failed, retrying", "topic", r.topic, "partition", r.partition,
			"offset", r.nextOffset, "error", err)
	}

	if !r.backoff.Wait(ctx) {
		return ctx.Err()
	}

	return nil
}

// resetErrors begins the waits of handleError anew after a fetch that succeeded, and logs the end of a failure.
func (r *Reader) resetErrors() {
	r.backoff.Reset()
	if r.failing {
		r.failing = false
		r.cluster.log.Info("reading from Kafka recovered", "topic", r.topic, "partition", r.partition,
			"offset", r.nextOffset)
	}
}
