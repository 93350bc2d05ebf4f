package figures

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

const (
	// group is the consumer group of all indexers.
	group = "trunkline-figures"

	maxBatches   = 4    // concurrent writes of one process, which has 16 connections
	batchRecords = 5000 // approximate size of one batch
	// gatherTime is the time for which a batch collects records: a row that changes several
	// times within it is written once.
	gatherTime = 300 * time.Millisecond
)

// Indexer writes the rows of cc.stats to the database. Several may run concurrently.
type Indexer struct {
	*Store
	cluster *kafka.Cluster
	zones   func() map[string]*time.Location // of the accounts
	writers chan struct{}                    // semaphore of concurrent batch writes
}

// NewIndexer creates an indexer; zones returns the time zone of each account. It starts nothing;
// Run does.
func NewIndexer(s *Store, cluster *kafka.Cluster, zones func() map[string]*time.Location) *Indexer {
	return &Indexer{Store: s, cluster: cluster, zones: zones, writers: make(chan struct{}, maxBatches)}
}

// Run stores rows until ctx ends, then returns nil.
func (i *Indexer) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ending, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { i.runRetention(ending) })
	running.Go(func() { i.runDays(ending) })
	err := i.cluster.RunGroup(ctx, kafka.GroupConfig{Group: group, Topics: []string{event.TopicStats}},
		func(ctx context.Context, assigned *kafka.Assignment) error {
			return i.runPartition(ctx, assigned.Partition, assigned.Commit)
		})
	if err != nil {
		return fmt.Errorf("storing figures: %w", err)
	}
	return nil
}

// runPartition stores one partition until ctx ends or an unexpected error occurs; then
// the group restarts it.
func (i *Indexer) runPartition(ctx context.Context, partition int, commit func(next int64)) error {
	w := &worker{Indexer: i, partition: partition, commit: commit}
	w.retry = retry.WhileUnavailable(func(action string, err error, wait time.Duration) {
		w.metrics.retries.Inc()
		w.log.Warn("storing figures paused", "doing", action, "partition", partition, "wait", wait, "error", err)
	})
	for {
		err := w.process(ctx)
		gap, passable := kafka.PassableGap(err)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errFenced):
			i.log.Info("partition's figures stored by another process", "partition", w.partition)
			continue
		case passable:
			i.log.Warn("figures topic does not continue at the stored offset, reading continues after the gap",
				"partition", w.partition, "kind", gap.Kind, "stored", w.at.Offset, "resume", gap.Resume)
			err = w.storeEntries(ctx, changes{}, gap.Position())
			if err == nil || errors.Is(err, errFenced) {
				continue
			}
		}
		return fmt.Errorf("storing figures of partition %d: %w", w.partition, err)
	}
}

// worker stores the rows of one partition, in one goroutine.
type worker struct {
	*Indexer
	partition int
	commit    func(next int64)
	at        kafka.LogPosition // all earlier rows are in the database
	retry     retry.Func
}

// process stores new rows, starting at the offset in the database.
func (w *worker) process(ctx context.Context) error {
	err := w.retry(ctx, "taking over", func() error {
		first, _, err := w.cluster.Offsets(ctx, event.TopicStats, w.partition)
		if err == nil {
			w.at, err = w.findOrCreateOffset(ctx, w.partition, first)
		}
		return err
	})
	if err != nil {
		return err
	}
	reader := w.cluster.OpenReader(
		kafka.ReaderConfig{Topic: event.TopicStats, Partition: w.partition, From: w.at, Compacted: true})
	defer reader.Close()
	for {
		found, oldest, err := w.readBatch(ctx, reader)
		if err != nil {
			return err
		}
		if err := w.storeEntries(ctx, found, reader.Position()); err != nil {
			return err
		}
		w.metrics.delay.Observe(time.Since(oldest).Seconds())
	}
}

// readBatch waits for a record and collects those that arrive within gatherTime.
func (w *worker) readBatch(ctx context.Context, reader *kafka.Reader) (found changes, oldest time.Time, err error) {
	read := func(ctx context.Context) (n int, err error) {
		records, err := reader.Read(ctx)
		for i := range records {
			r := &records[i]
			if oldest.IsZero() {
				oldest = r.Time
			}
			e, isRow, err := decode(r)
			o, occurred := occurrence{}, false
			if !isRow {
				o, occurred, err = decodeOccurrence(r)
			}
			switch {
			case err != nil:
				w.metrics.invalid.Inc()
				w.log.Error("invalid record in the topic of figures", "topic", event.TopicStats,
					"partition", r.Partition, "offset", r.Offset, "error", err)
			case isRow:
				found.entries = append(found.entries, e)
			case occurred:
				found.occurrences = append(found.occurrences, o)
			}
		}
		return len(records), err
	}
	n := 0
	err = w.retry(ctx, "reading", func() (err error) {
		n, err = read(ctx)
		return err
	})
	if err != nil {
		return found, oldest, err
	}
	more, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	for n < batchRecords {
		added, err := read(more)
		if err != nil {
			break // gatherTime is over; a persistent error occurs again in the next batch
		}
		n += added
	}
	return found, oldest, nil
}

// storeEntries writes changes and the position after them in one transaction.
func (w *worker) storeEntries(ctx context.Context, found changes, to kafka.LogPosition) error {
	select {
	case w.writers <- struct{}{}:
		defer func() { <-w.writers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	b := batch{partition: w.partition, changes: found, fence: func(ctx context.Context, tx *sqldb.BulkTx) error {
		return updateOffset(ctx, tx, w.partition, w.at, to)
	}}
	if err := w.retry(ctx, "writing", func() error { return w.apply(ctx, b) }); err != nil {
		return err
	}
	w.at = to
	w.commit(to.Offset)
	return nil
}
