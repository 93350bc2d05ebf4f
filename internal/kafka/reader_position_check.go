package kafka

import (
	"context"
	"fmt"

	kafkago "github.com/segmentio/kafka-go"
)

// checkRange returns *GapError if nextOffset is outside the log, and nil if it is in
// the log after all: a new leader may not have had it yet.
func (r *Reader) checkRange(ctx context.Context) error {
	first, next, err := r.cluster.Offsets(ctx, r.topic, r.partition)
	if err != nil {
		return err
	}

	switch {
	case r.nextOffset < first:
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	case r.nextOffset > next:
		if err := r.checkEpoch(ctx); err != nil {
			return err
		}
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	}

	return nil
}

// checkEpoch returns *GapError if the record before nextOffset is no longer in the
// log.
func (r *Reader) checkEpoch(ctx context.Context) error {
	last := r.epochs.last()
	if last == UnknownEpoch {
		return nil
	}
	end, err := r.cluster.EpochEnd(ctx, r.topic, r.partition, last)
	if err != nil || end.LeaderEpoch == last && end.Offset >= r.nextOffset {
		return err
	}
	return r.divergenceGap(ctx, end)
}

// divergenceGap returns the error of a log in which the newest epoch, up to that of the
// last record read, differs or ends before the reader.
func (r *Reader) divergenceGap(ctx context.Context, end EpochEnd) error {
	first, next, err := r.cluster.Offsets(ctx, r.topic, r.partition)
	if err != nil {
		return err
	}
	if r.nextOffset <= first { // no record before it is in the log
		return OutOfRange(r.topic, r.partition, r.nextOffset, first, next)
	}
	// The log may go on in that epoch beyond what was read of it: common is only what both have.
	end.Offset = min(end.Offset, r.epochs.endOf(end.LeaderEpoch))
	return truncationGap(r.topic, r.partition, r.nextOffset, end, first, next)
}

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

func (r *Reader) resetErrors() {
	r.backoff.Reset()
	if r.failing {
		r.failing = false
		r.cluster.log.Info("reading from Kafka recovered", "topic", r.topic, "partition", r.partition,
			"offset", r.nextOffset)
	}
}
