package normalizer

import (
	"context"
	"errors"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// checkNewEpoch checks, before the first record of another leader epoch is processed,
// that the new leader has all raw records that were normalized, by this worker or by
// another one that stopped late and is ahead of it.
func (w *partitionWorker) checkNewEpoch(ctx context.Context) error {
	err := w.retry(ctx, "checking the raw log", func() error {
		if err := w.deps.LogReader.CheckPosition(ctx, w.rawTopic, w.Partition, w.next); err != nil {
			return err
		}

		newest, err := w.findNewestEvent(ctx)
		if err != nil {
			return err
		}

		if newest != nil &&
			newest.position.Compare(event.Position{Offset: w.next.Offset - 1, Generation: w.generation}) > 0 {
			err = w.resumeAfterEvent(ctx, newest)
		}

		return err
	})
	if err != nil {
		return w.handleGap(ctx, err)
	}

	w.next.LeaderEpoch = kafka.UnknownEpoch // checked
	return nil
}

// handleGap moves the worker to where the raw log continues, if err is a gap at
// w.next. It returns other errors.
func (w *partitionWorker) handleGap(ctx context.Context, err error) error {
	gap, err := kafka.ConfirmGap(ctx, err, func(ctx context.Context) error {
		return w.retry(ctx, "checking the raw log", func() error {
			return w.deps.LogReader.CheckPosition(ctx, w.rawTopic, w.Partition, w.next)
		})
	})

	switch {
	case gap == nil:
		return err
	case gap.ReusesOffsets():
		return w.startGeneration(ctx, gap)
	}

	w.skipLost(gap)
	return nil
}

// skipLost moves the worker behind lost records.
func (w *partitionWorker) skipLost(gap *kafka.GapError) {
	// What lies before the commit was processed, if only to dead letters.
	lost := max(gap.Resume-max(w.next.Offset, w.deadLettersWrittenBefore), 0)
	w.metrics.lost.WithLabelValues(w.rawTopic).Add(float64(lost))
	w.log.Error("raw records lost", "topic", w.rawTopic, "partition", w.Partition, "kind", gap.Kind,
		"offset", w.next.Offset, "resume", gap.Resume, "lost", lost, "error", gap)
	w.next.Offset, w.next.LeaderEpoch = gap.Resume, kafka.UnknownEpoch
}

// startGeneration continues in a raw log that was truncated or recreated. Its offsets are used
// a second time, so the positions of its records have the next generation, unless
// another worker has already started it. Ids continue from the newest.
func (w *partitionWorker) startGeneration(ctx context.Context, gap *kafka.GapError) error {
	w.metrics.restarts.WithLabelValues(w.rawTopic, string(gap.Kind)).Inc()
	w.log.Error("raw log truncated: acknowledged records may be lost", "topic", w.rawTopic, "partition", w.Partition,
		"kind", gap.Kind,
		"processed", w.next.Offset, "resume", gap.Resume, "error", gap)
	w.CommitLower(gap.Resume)

	oldGeneration := w.generation
	return w.retry(ctx, "taking over", func() error {
		newest, err := w.findNewestEvent(ctx)
		if err != nil {
			return err
		}

		err = w.resumeAfterEvent(ctx, newest)
		gap, isGap := errors.AsType[*kafka.GapError](err)
		if err != nil && !isGap {
			return err
		}

		// Otherwise another worker has started the generation.
		if isGap && gap.ReusesOffsets() || w.generation <= oldGeneration {
			if oldGeneration == event.MaxGeneration {
				w.log.Error("event generations exhausted: new records will be treated as duplicates",
					"topic", w.rawTopic, "partition", w.Partition)
			}
			w.generation = min(max(w.generation, oldGeneration)+1, event.MaxGeneration)
		}

		if isGap && gap.ReusesOffsets() {
			return w.moveTo(ctx, gap.Resume)
		}
		if isGap {
			w.skipLost(gap)
		}

		return nil
	})
}

// moveTo moves the worker to an offset of the current raw log.
func (w *partitionWorker) moveTo(ctx context.Context, offset int64) error {
	topicID, err := w.deps.LogReader.TopicID(ctx, w.rawTopic)
	w.next = kafka.LogPosition{TopicID: topicID, Offset: offset, LeaderEpoch: kafka.UnknownEpoch}
	w.deadLettersWrittenBefore = 0
	return err
}
