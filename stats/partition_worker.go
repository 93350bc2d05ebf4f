package stats

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

const (
	// flushBytes is the estimated size of changed records at which they are written,
	// below the limit of one request.
	flushBytes = 500_000
	// gatherTime is the minimum time between batches, unless flushBytes have changed:
	// under load a row changes many times within it and is written once.
	gatherTime = 200 * time.Millisecond
	// positionInterval is the time between batches with a position alone.
	positionInterval = 10 * time.Second
	// idleInterval is the longest wait of a worker that nothing wakes, and that has nothing to write.
	idleInterval = time.Minute
)

// partitionWorker computes the figures of one partition, in one goroutine.
type partitionWorker struct {
	partitionFold
	commit func(next int64) // commits an offset to the group, which only measures its lag
	oldest *atomic.Int64    // Unix milliseconds: the oldest event whose figures are not written yet; 0: none

	next          int64 // offset in cc.stats after the last known record
	lastWriteAt   time.Time
	positionDirty bool            // position is not written yet
	repairDueAt   time.Time       // when to check for records of another processor; zero: done
	ignored       int64           // value of Fold.Ignored included in the metric
	countedSizes  [len(kinds)]int // of the kinds of entries, as included in the metric
	overdue       lastOverdueMessage
	triggers      alertTriggers
	rebuild       *rebuildRun // nil: none is running
}

// errBehind is returned if another processor has written figures of later events.
var errBehind = errors.New("another processor is ahead")

// process folds new events, starting at the position on cc.stats.
func (w *partitionWorker) process(ctx context.Context) error {
	if err := w.loadFigures(ctx); err != nil {
		return err
	}
	defer w.stopRebuild()

	for {
		gap, err := kafka.ConfirmGap(ctx, w.read(ctx), w.checkEvents)
		if gap != nil && ctx.Err() == nil {
			err = w.skipGap(ctx, gap)
		}
		if err != nil {
			return err
		}
	}
}

// loadFigures reads the figures from cc.stats, and checks that cc.evt continues at their
// position.
func (w *partitionWorker) loadFigures(ctx context.Context) error {
	began := time.Now()
	var v *topicView
	err := w.retry(ctx, "reading the figures", func() (err error) {
		w.next, err = w.deps.LogReader.ScanCompacted(ctx, event.TopicStats, w.partition, 0,
			func() { v = newTopicView() }, func(r *kafka.Record) { v.applyRecord(r) })
		return err
	})
	if err != nil {
		return err
	}

	if v.foreign != nil {
		w.log.Error("records of another writer in the topic of figures", "topic", event.TopicStats,
			"partition", w.partition, "error", v.foreign)
	}

	// The partition's former owner may still write for this time: its records are looked for afterwards.
	w.lastWriteAt, w.repairDueAt = time.Now(), time.Now().Add(kafka.GroupOverlap)
	if v.position == nil {
		err = w.retry(ctx, "starting figures", func() error { return w.seekToBeginning(ctx) })
	} else {
		w.position = *v.position
		// After a change of stats.interval the old rows stay on the topic for readers, and the fold begins new ones.
		foreign := w.fold.Load(v.live(), w.position.EventID)
		if len(foreign) > 0 {
			w.log.Warn("figures not taken over: of another interval length, or unknown", "partition", w.partition,
				"records", len(foreign), "first", foreign[0])
		}

		err = w.skipLostEvents(ctx)
	}

	w.metrics.queues.drop(w.partition)
	w.metrics.queues.applyChanges(w.partition, w.fold.table, maps.Keys(w.fold.table.entries))
	w.countEntries(true)
	w.metrics.load.Observe(time.Since(began).Seconds())

	return err
}

// skipLostEvents moves the position to the continuation of cc.evt, if the log does not
// continue there.
func (w *partitionWorker) skipLostEvents(ctx context.Context) error {
	err := w.checkEvents(ctx)
	if gap, ok := kafka.PassableGap(err); ok {
		return w.skipGap(ctx, gap)
	}
	return err
}

// checkEvents returns *kafka.GapError if cc.evt does not continue at the position.
func (w *partitionWorker) checkEvents(ctx context.Context) error {
	return w.retry(ctx, "checking the normalized log", func() error {
		return w.deps.LogReader.CheckPosition(ctx, event.TopicEvents, w.partition, w.logPosition())
	})
}

// skipGap continues after a gap in cc.evt. Events that are written again there, with the
// same ids, change nothing.
func (w *partitionWorker) skipGap(ctx context.Context, gap *kafka.GapError) error {
	w.log.Error("events lost from the normalized log", "topic", event.TopicEvents, "partition", w.partition,
		"kind", gap.Kind,
		"folded", w.position.Offset, "resume", gap.Resume, "error", gap)
	w.metrics.lost.Add(float64(gap.Lost()))

	return w.retry(ctx, "going on behind a gap", func() error {
		id, err := w.deps.LogReader.TopicID(ctx, event.TopicEvents)
		if err != nil {
			return err
		}

		w.position.Offset = gap.Resume
		// The epoch of the record before the gap says nothing about the log behind it.
		w.position.LeaderEpoch = kafka.UnknownEpoch
		w.position.TopicID = id.String()
		w.positionDirty = true

		return nil
	})
}

// read folds and writes until an error occurs.
func (w *partitionWorker) read(ctx context.Context) error {
	reader := w.openEvents()
	defer reader.Close()

	backoff := retry.NewBackendBackoff()
	for {
		records, err := w.readUntilWriteDue(ctx, reader)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && fault.IsUnavailable(err):
			w.metrics.retries.Inc()
			if !backoff.Wait(ctx) {
				return ctx.Err()
			}
		case err != nil:
			return err
		default:
			backoff.Reset()
		}

		for i := range records {
			if w.oldest.Load() == 0 {
				w.oldest.Store(records[i].Time.UnixMilli())
			}

			w.positionDirty = true
			if err := w.foldRecord(ctx, &records[i]); err != nil {
				return err
			}

			if w.fold.ChangedBytes() >= flushBytes {
				if err := w.writeChanges(ctx); err != nil {
					return err
				}
			}
		}

		if err := w.writeDue(ctx); err != nil {
			return err
		}
		if err := w.writeOverdue(ctx, reader.Idle()); err != nil {
			return err
		}
		if err := w.writeTriggerEvents(ctx, reader.Idle()); err != nil {
			return err
		}
		if err := w.stepRebuild(ctx); err != nil {
			return err
		}
		// Events that change no figure leave nothing to write: they are no lag.
		if reader.Lag() == 0 && w.fold.Changed() == 0 {
			w.oldest.Store(0)
		}
	}
}

// readUntilWriteDue reads the next records, or returns none when a write is due or a rebuild is
// requested.
func (w *partitionWorker) readUntilWriteDue(ctx context.Context, reader kafka.Source) ([]kafka.Record, error) {
	until := w.lastWriteAt.Add(positionInterval)
	switch {
	case w.fold.Changed() > 0:
		until = w.lastWriteAt.Add(gatherTime)
	case !w.positionDirty:
		until = time.Now().Add(idleInterval)
	}

	if !w.repairDueAt.IsZero() && w.repairDueAt.Before(until) {
		until = w.repairDueAt
	}

	for _, at := range [...]time.Time{w.overdueAt(time.Now()), w.nextTriggerCheck(time.Now())} {
		if at.Before(until) {
			until = at
		}
	}

	if w.rebuild != nil { // check for its end
		at := time.Now().Add(rebuildPollInterval)
		if at.Before(until) {
			until = at
		}
	}

	within, cancel := context.WithDeadline(ctx, until)
	defer cancel()

	if w.rebuilds != nil && w.rebuild == nil {
		w.rebuilds.setWake(w.partition, cancel)
		defer w.rebuilds.setWake(w.partition, nil)
	}
	if w.feeds != nil && !w.followsFeeds() {
		w.feeds.setWake(w.partition, cancel)
		defer w.feeds.setWake(w.partition, nil)
	}

	records, err := reader.Read(within)
	// The wait is over, or a wake ended it: no error of the log.
	if err != nil && within.Err() != nil {
		return nil, nil
	}

	return records, err
}

// writeDue writes the records and positions that are due.
func (w *partitionWorker) writeDue(ctx context.Context) error {
	since := time.Since(w.lastWriteAt)
	if w.fold.Changed() > 0 && since >= gatherTime || w.positionDirty && since >= positionInterval {
		if err := w.writeChanges(ctx); err != nil {
			return err
		}
	}

	if w.repairDueAt.IsZero() || time.Now().Before(w.repairDueAt) {
		return nil
	}

	w.repairDueAt = time.Time{}
	if err := w.writeChanges(ctx); err != nil { // so that the fold equals the topic
		return err
	}

	return w.repair(ctx)
}

// writeChanges writes the changes durably, with the position, in one record batch.
func (w *partitionWorker) writeChanges(ctx context.Context) error {
	if err := w.writeMessages(ctx, w.fold.TakePerformances()...); err != nil { // before the position, which covers them
		return err
	}
	if err := w.writeAlerts(ctx, w.fold.TakeAlerts()); err != nil { // likewise
		return err
	}

	w.position.EventID = w.fold.Last()
	w.metrics.queues.applyChanges(w.partition, w.fold.table, maps.Keys(w.fold.table.dirty))
	var records []kafka.Record
	w.fold.Flush(func(r Record) { records = append(records, w.newRecord(r)) })

	if err := w.write(ctx, records); err != nil {
		return err
	}

	w.positionDirty = false
	w.oldest.Store(0)
	// The group's offset only measures the lag: a takeover begins at the position on cc.stats.
	w.commit(w.position.Offset)
	w.countEntries(true)
	w.metrics.late.Add(float64(w.fold.Ignored() - w.ignored))
	w.ignored = w.fold.Ignored()

	return nil
}

// write writes records and the position after them. If their offsets do not directly
// follow the last known record of the topic, another processor has written too.
func (w *partitionWorker) write(ctx context.Context, records []kafka.Record) error {
	written, err := w.writeWithRetry(ctx, records)
	if err != nil {
		return err
	}

	n := int64(len(records)) + 1
	if written == (kafka.Appended{First: w.next, Next: w.next + n}) {
		w.next = written.Next
		return nil
	}

	return w.repair(ctx)
}

func (w *partitionWorker) writeWithRetry(ctx context.Context, records []kafka.Record) (written kafka.Appended,
	err error) {
	records = append(records,
		kafka.Record{Topic: event.TopicStats, Partition: w.partition, Key: []byte(state.PositionKey),
			Value: w.position.Append(nil)})
	err = w.retry(ctx, "writing figures", func() (err error) {
		written, err = w.deps.Producer.ProduceWithOffsets(ctx, records...)
		return err
	})

	w.lastWriteAt = time.Now()
	w.metrics.batches.Inc()
	w.metrics.records.Add(float64(len(records)))

	return written, err
}

// repair compares the last records of the topic that may be of another processor with
// its own, and writes differing ones again: compaction keeps the last record of a key.
// It returns errBehind if another processor has folded later events. All changes must
// have been flushed.
func (w *partitionWorker) repair(ctx context.Context) error {
	last := map[string][]byte{}
	behind := false
	// From the last known record on: this worker's own batch is among them, and equals the fold.
	end, err := w.scanLastRecords(ctx, w.next, last, &behind)
	if err == nil && end < w.next {
		w.log.Error("figures topic truncated, its records are written again", "topic", event.TopicStats,
			"partition", w.partition,
			"written", w.next, "end", end)
		// A truncated topic has lost nobody knows what: each entry is compared, and so written.
		for key := range w.fold.table.entries {
			last[key.String()] = nil
		}
	}
	if err != nil {
		return err
	}

	if behind {
		return errBehind
	}

	w.next = end

	var records []kafka.Record
	size := 0
	write := func() error {
		written, err := w.writeWithRetry(ctx, records)
		n := int64(len(records)) + 1
		if err == nil && written.First == w.next {
			w.next += n
		}

		records, size = nil, 0
		return err
	}

	for key, value := range last {
		own := w.fold.table.recordValue(key)
		if bytes.Equal(own, value) && (own == nil) == (value == nil) {
			continue
		}

		records = append(records, w.newRecord(Record{Key: key, Value: own, EventID: w.position.EventID}))
		w.metrics.repairs.Inc()
		size += len(key) + len(own) + 64
		if size >= flushBytes {
			if err := write(); err != nil {
				return err
			}
		}
	}

	if len(records) == 0 {
		return nil
	}

	return write()
}

// scanLastRecords reads the last record of each key from an offset on.
func (w *partitionWorker) scanLastRecords(ctx context.Context, from int64, last map[string][]byte,
	behind *bool) (end int64, err error) {
	err = w.retry(ctx, "checking the figures", func() (err error) {
		reset := func() { clear(last); *behind = false }
		end, err = w.deps.LogReader.ScanCompacted(ctx, event.TopicStats, w.partition, from, reset,
			func(r *kafka.Record) {
				if string(r.Key) != state.PositionKey {
					last[string(r.Key)] = append([]byte(nil), r.Value...)
					return
				}

				p, err := state.ParseRecord(state.PositionKey, r.Value, nil)
				if err == nil && p.Position.EventID > w.position.EventID {
					*behind = true
				}
			})

		return err
	})

	return end, err
}

// countEntries sets this partition's share of the entries metric: its sizes, or
// nothing.
func (w *partitionWorker) countEntries(held bool) {
	for i, kind := range kinds {
		size := 0
		if held {
			size = w.fold.table.counts[i]
		}
		w.metrics.entries.WithLabelValues(kind).Add(float64(size - w.countedSizes[i]))
		w.countedSizes[i] = size
	}
}
