package cdrindex

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/tracing"
)

// Indexer writes the cdr topic to the index. Any number may run at the same
// time.
type Indexer struct {
	*Index
	topic   Topic
	tracer  *tracing.Tracer // nil: tracing is off
	writers chan struct{}   // semaphore of concurrent batch writes
}

// NewIndexer creates an indexer. It does nothing before Run. Without a tracer there
// are no spans.
func NewIndexer(index *Index, topic Topic, trace *tracing.Tracer) *Indexer {
	return &Indexer{Index: index, topic: topic, tracer: trace, writers: make(chan struct{}, maxConcurrentBatches)}
}

// Run works until ctx ends, then returns nil.
func (i *Indexer) Run(ctx context.Context) error {
	var retention sync.WaitGroup
	defer retention.Wait()
	retentionCtx, cancelRetention := context.WithCancel(ctx)
	defer cancelRetention()
	retention.Go(func() { i.runRetention(retentionCtx) })
	if err := i.topic.Work(ctx, i.runPartition); err != nil {
		return fmt.Errorf("indexing call records: %w", err)
	}
	return nil
}

// runPartition indexes one partition until ctx ends or an unexpected error occurs; then
// the group restarts it.
func (i *Indexer) runPartition(ctx context.Context, partition int, commit func(next int64)) error {
	oldest, untrack := i.metrics.lag.Track(partition)
	defer untrack()
	w := &partitionWorker{Indexer: i, partition: partition, commit: commit, oldest: oldest}
	w.retry = retry.WhileUnavailable(func(action string, err error, wait time.Duration) {
		w.metrics.countRetry(action)
		w.log.Warn("partition processing paused", "doing", action, "partition", partition, "wait", wait, "error", err)
	})
	for {
		err := w.processRecords(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errFenced):
			i.metrics.errors.WithLabelValues(failedFence).Inc()
			i.log.Info("partition indexed by another process", "partition", partition)
		default:
			err = w.handleGap(ctx, err)
			if err != nil && !errors.Is(err, errFenced) {
				return fmt.Errorf("indexing partition %d: %w", partition, err)
			}
		}
	}
}
