package normalizer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// partitionWorker normalizes one raw partition, in one goroutine.
type partitionWorker struct {
	*Normalizer
	*conversion
	kafka.Assigned
	retry retry.Func

	next                     kafka.LogPosition // in the raw log, after the last record processed
	generation               int               // of the raw log, see event.Position
	prevID                   event.ID          // of the last record processed; 0 if unknown
	deadLettersWrittenBefore int64             // dead letters of records below this offset were written earlier

	batch             batch
	stateKeeper       *stateKeeper       // nil if the route has no state
	accountPartitions *accountPartitions // nil if the route has none
	oneAtATime        bool               // a batch was rejected as too large
}

// runPartition normalizes one partition until ctx ends or an unexpected error
// occurs; then the group restarts it, and it takes over again.
func (n *Normalizer) runPartition(ctx context.Context, assigned kafka.Assigned) (err error) {
	r, ok := conversions[assigned.Topic]
	if !ok {
		return fmt.Errorf("%q is not a raw topic", assigned.Topic)
	}

	w := &partitionWorker{Normalizer: n, conversion: r, Assigned: assigned, batch: batch{
		conversion: r, partition: assigned.Partition, accounts: n.deps.Accounts,
		maxRecordBytes: n.cfg.MaxRecordBytes, cloudEvents: n.cfg.CloudEvents, panics: n.panics, counts: newCounts(),
		traces: traces{tracer: n.deps.Tracer, group: n.cfg.Group},
	}}

	w.retry = retry.WhileUnavailable(func(action string, err error, wait time.Duration) {
		w.metrics.retries.Inc()
		w.log.Warn("partition processing paused", "doing", action, "topic", w.rawTopic, "partition", w.Partition,
			"wait", wait, "error", err)
	})

	if r.hasEventIDs { // first, so that takeOver finds no event before the state's last
		var stopState func()
		ctx, stopState, err = w.startState(ctx)
		if err != nil {
			return fmt.Errorf("rebuilding the state of %s/%d: %w", assigned.Topic, assigned.Partition, err)
		}
		defer stopState()

		if err := w.loadAccountPartitions(ctx); err != nil {
			return fmt.Errorf("reading the accounts of %s/%d: %w", assigned.Topic, assigned.Partition, err)
		}
	}

	if err := w.takeOver(ctx); err != nil {
		return fmt.Errorf("taking over %s/%d: %w", assigned.Topic, assigned.Partition, err)
	}

	for {
		err = w.catchUpState(ctx)
		if err == nil {
			err = w.processRecords(ctx)
		}
		if err != nil {
			// The writer of the state ends ctx when it fails: then its error is the reason.
			cause := context.Cause(ctx)
			if cause != nil {
				err = cause
			}
			return fmt.Errorf("normalizing %s/%d: %w", assigned.Topic, assigned.Partition, err)
		}
	}
}

// processRecords normalizes new records until ctx ends, until the records at w.next
// are lost, or until another normalizer is found to be ahead. In the last two
// cases it returns nil, and w.next is the position at which to resume.
func (w *partitionWorker) processRecords(ctx context.Context) error {
	reader := w.deps.LogReader.Read(kafka.ReaderConfig{Topic: w.rawTopic, Partition: w.Partition, From: w.next})
	defer reader.Close()

	for {
		var records []kafka.Record
		err := w.retry(ctx, "reading", func() (err error) {
			records, err = reader.Read(ctx)
			return err
		})
		if err != nil {
			return w.handleGap(ctx, err)
		}

		sameEpoch := w.countSameEpoch(records)
		for i := 0; i < sameEpoch; {
			n, err := w.processBatch(ctx, records[i:sameEpoch])
			if err != nil {
				return err
			}

			i += n
			if w.stateKeeper.isAhead() {
				return nil
			}
		}

		if sameEpoch < len(records) {
			return w.checkNewEpoch(ctx)
		}

		w.oneAtATime = false
	}
}

// countSameEpoch returns the number of records at the front with the leader epoch of the
// last processed record.
func (w *partitionWorker) countSameEpoch(records []kafka.Record) int {
	epoch := w.next.LeaderEpoch
	if epoch == kafka.UnknownEpoch {
		epoch = records[0].LeaderEpoch
	}
	if records[len(records)-1].LeaderEpoch == epoch { // epochs never decrease
		return len(records)
	}
	return slices.IndexFunc(records, func(r kafka.Record) bool { return r.LeaderEpoch != epoch })
}

// processBatch normalizes one batch from the front of records, makes the result
// durable and commits. It returns the number of records in the batch.
func (w *partitionWorker) processBatch(ctx context.Context, records []kafka.Record) (n int, err error) {
	b := &w.batch
	if err := w.fillBatch(ctx, records); err != nil {
		return 0, err
	}

	// Before the events: once these are written, a takeover continues behind them.
	if err := w.produceDeadLetters(ctx, b.deadLetters); err != nil {
		return 0, err
	}
	if err := w.accountPartitions.ensureNamed(ctx, b.events); err != nil {
		return 0, err
	}

	written, err := w.produceEvents(ctx, b.events)
	if fault.KindOf(err) == fault.KindTooLarge {
		return w.splitBatch(ctx, records)
	}
	if err == nil {
		err = w.stateKeeper.commitBatch(ctx, w.positionOf(&records[b.rawRecords-1]), b.events, written)
	}
	if err != nil {
		return 0, err
	}

	w.markProcessed(records[:b.rawRecords])
	return b.rawRecords, nil
}

// positionOf returns the position of a raw record.
func (w *partitionWorker) positionOf(raw *kafka.Record) event.Position {
	return event.Position{Partition: w.Partition, Offset: raw.Offset, Generation: w.generation}
}

// maxFailures is the number of times that a record may fail in a row in one
// worker, before it becomes a dead letter. With the waits of retry between, this takes
// about 6 seconds. fault.KindUnavailable does not count.
const maxFailures = 8

// fillBatch fills the batch with at least one record from the front of records.
// Records before a failing one form their own batch, so that the failure does not
// delay them.
func (w *partitionWorker) fillBatch(ctx context.Context, records []kafka.Record) error {
	b := &w.batch
	limit := len(records)
	if w.oneAtATime {
		limit = 1
	}

	failures := 0
	return w.retry(ctx, "normalizing", func() error {
		w.resetBatch()
		err := b.fill(ctx, records, limit)
		if b.rawRecords > 0 || err == nil {
			return nil
		}
		if fault.IsUnavailable(err) || ctx.Err() != nil {
			return err
		}

		failures++
		if failures < maxFailures {
			// Of this kind, so that retry waits and tries again.
			return fault.Unavailable(err, 0, "normalizing a record failed")
		}

		w.log.Error("record failed repeatedly, written as a dead letter", "topic", w.rawTopic, "partition", w.Partition,
			"offset", records[0].Offset, "failures", failures, "error", err)
		w.rejectFirst(&records[0], format.Rejectf(Internal, "normalizing it failed %d times", failures))

		return nil
	})
}

func (w *partitionWorker) resetBatch() {
	w.batch.reset(w.prevID)
	if w.batch.topicID != w.next.TopicID {
		w.batch.sourceLog = nil
	}
	w.batch.generation, w.batch.topicID = w.generation, w.next.TopicID
	w.batch.deadLettersWrittenBefore = w.deadLettersWrittenBefore
}

// rejectFirst replaces the batch with the dead letter of raw.
func (w *partitionWorker) rejectFirst(raw *kafka.Record, why *format.Rejection) {
	w.resetBatch()
	w.batch.rejectFirst(raw, why)
}

// splitBatch handles a batch that is too large for its topic, because the topic's
// limit is below Config.MaxRecordBytes. The records are tried one at a time; a single
// record that is too large becomes a dead letter.
func (w *partitionWorker) splitBatch(ctx context.Context, records []kafka.Record) (n int, err error) {
	if w.batch.rawRecords > 1 {
		w.oneAtATime = true
		return 0, nil
	}

	w.rejectFirst(&records[0], tooLargeRejection())
	if err := w.produceDeadLetters(ctx, w.batch.deadLetters); err != nil {
		return 0, err
	}
	if err := w.stateKeeper.commitBatch(ctx, w.positionOf(&records[0]), nil, kafka.Appended{}); err != nil {
		return 0, err
	}

	w.markProcessed(records[:1])
	return 1, nil
}

// markProcessed marks records, whose results are durable, as processed.
func (w *partitionWorker) markProcessed(records []kafka.Record) {
	last := &records[len(records)-1]
	w.prevID = w.batch.lastID
	w.batch.traces.end()
	w.next.Offset, w.next.LeaderEpoch = last.Offset+1, last.LeaderEpoch
	w.Commit(w.next.Offset)
	w.metrics.addCounts(w.rawTopic, &w.batch.counts)
	w.metrics.batch.Observe(float64(len(records)))
	w.metrics.delay.Observe(time.Since(records[0].Time).Seconds())
}

// produceDeadLetters writes dead letters durably. A dead letter that is too large for
// cc.dead is written without its value; its headers identify the raw record.
func (w *partitionWorker) produceDeadLetters(ctx context.Context, dead []kafka.Record) error {
	err := w.produceWithRetry(ctx, dead)
	if fault.KindOf(err) != fault.KindTooLarge {
		return err
	}

	if len(dead) > 1 {
		for i := range dead {
			if err := w.produceDeadLetters(ctx, dead[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}

	w.log.Error("dead letter too large for its topic, written without its value",
		"topic", w.rawTopic, "partition", w.Partition, "bytes", len(dead[0].Value))
	dead[0].Value = nil

	return w.produceWithRetry(ctx, dead)
}

// produceEvents writes the events of a batch durably and returns their offsets in the
// normalized topic.
func (w *partitionWorker) produceEvents(ctx context.Context,
	events []kafka.Record) (written kafka.Appended, err error) {
	if len(events) == 0 {
		return written, nil
	}
	err = w.retry(ctx, "producing", func() (err error) {
		written, err = w.deps.Producer.ProduceWithOffsets(ctx, events...)
		return err
	})
	return written, err
}

func (w *partitionWorker) produceWithRetry(ctx context.Context, records []kafka.Record) error {
	if len(records) == 0 {
		return nil
	}
	return w.retry(ctx, "producing", func() error { return w.deps.Producer.Produce(ctx, records...) })
}
