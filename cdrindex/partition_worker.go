package cdrindex

import (
	"context"
	"sync/atomic"

	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

// partitionWorker indexes one partition of the cdr topic, in one goroutine.
type partitionWorker struct {
	*Indexer
	partition int
	commit    func(next int64)
	oldest    *atomic.Int64 // Unix milliseconds, of the oldest record not stored yet; 0 if there is none
	position  indexPosition // everything before it is in the database
	retry     retry.Func
}

// processRecords indexes new records, from the position in the database on.
func (w *partitionWorker) processRecords(ctx context.Context) error {
	if err := w.retry(ctx, "taking over", func() error { return w.takeOver(ctx) }); err != nil {
		return err
	}
	reader := w.topic.Read(w.partition, w.position.next)
	defer reader.Close()
	g := &batchReader{reader: reader, generation: w.position.generation, maxEntries: maxBatchRows, log: w.log,
		tracer: w.tracer}
	for {
		if err := w.retry(ctx, actionRead, func() error { return g.readBatch(ctx) }); err != nil {
			return err
		}
		if err := w.checkEpoch(ctx, g.firstEpoch); err != nil {
			return err
		}
		w.oldest.Store(g.oldest.UnixMilli())
		if err := w.storeBatch(ctx, g); err != nil {
			return err
		}
		w.oldest.Store(0)
		if reader.Lag() > 0 {
			w.oldest.Store(g.newest.UnixMilli())
		}
	}
}

// takeOver reads the position of the partition in the database and checks it against
// the topic. Returns *kafka.GapError when records at the position are lost.
func (w *partitionWorker) takeOver(ctx context.Context) error {
	first, _, err := w.topic.Offsets(ctx, w.partition)
	if err != nil {
		return err
	}
	w.position, err = w.findOrCreatePosition(ctx, w.partition, first)
	if err != nil {
		return err
	}
	if err := w.topic.CheckPosition(ctx, w.partition, w.position.next); err != nil {
		return err
	}
	if w.position.next.TopicID.IsZero() {
		w.position.next.TopicID, err = w.topic.TopicID(ctx)
	}
	return err
}

// checkEpoch checks, before the first batch of another leader epoch is stored,
// that the new leader has the records stored before.
func (w *partitionWorker) checkEpoch(ctx context.Context, epoch int32) error {
	if w.position.next.LeaderEpoch == kafka.UnknownEpoch || w.position.next.LeaderEpoch == epoch {
		return nil
	}
	return w.skipLostRecords(ctx)
}

// skipLostRecords checks that the topic continues at the position.
func (w *partitionWorker) skipLostRecords(ctx context.Context) error {
	return w.retry(ctx, actionRead, func() error { return w.topic.CheckPosition(ctx, w.partition, w.position.next) })
}

// handleGap moves the partition to where the topic continues if err is a gap at
// w.position. It returns other errors.
func (w *partitionWorker) handleGap(ctx context.Context, err error) error {
	gap, err := kafka.ResolveGap(ctx, err, w.skipLostRecords)
	if gap == nil {
		return err
	}
	target := w.position
	target.next.Offset, target.next.LeaderEpoch = gap.Resume, kafka.UnknownEpoch
	if gap.Kind == kafka.GapRecreated {
		target.next.TopicID, target.generation = kafka.TopicID{}, target.generation+1
	}
	w.log.Error("call records lost from the cdr topic", "partition", w.partition, "kind", gap.Kind,
		"indexed", w.position.next.Offset, "resume", gap.Resume, "error", gap)
	if err := w.retry(ctx, "skipping",
		func() error { return w.skipRecords(ctx, w.partition, w.position, target) }); err != nil {
		return err
	}
	if gap.Restarted() {
		w.metrics.restarts.WithLabelValues(string(gap.Kind)).Inc()
	}
	w.metrics.lost.Add(float64(gap.Lost()))
	return nil
}

// storeBatch makes a batch's rows and the offset after it durable together.
func (w *partitionWorker) storeBatch(ctx context.Context, g *batchReader) error {
	next := w.position
	next.next.Offset, next.next.LeaderEpoch = g.reader.Next(), g.lastEpoch
	b := batch{entries: g.entries, fence: func(ctx context.Context, tx *sqldb.BulkTx) error {
		return updatePosition(ctx, tx, w.partition, w.position, next)
	}}
	select {
	case w.writers <- struct{}{}:
		defer func() { <-w.writers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := w.retry(ctx, "writing", func() error {
		_, err := w.apply(ctx, b)
		return err
	})
	if err != nil {
		return err
	}
	w.position = next
	w.commit(next.next.Offset)
	w.metrics.countStored(g)
	g.endSpans()
	return nil
}

const actionRead = "reading"
