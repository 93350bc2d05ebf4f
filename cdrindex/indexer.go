package cdrindex

import (
	"context"
	"fmt"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// group is the consumer group of all indexers.
const group = "trunkline-cdrindex"

// Indexer writes the cdr topic to the index. Any number may run at the same
// time.
type Indexer struct {
	*Index
	consumer *consume.Consumer
}

// NewIndexer creates an indexer. It does nothing before Run. Without a tracer there
// are no spans.
func NewIndexer(x *Index, topics kafka.Log, trace *tracing.Tracer) *Indexer {
	return &Indexer{x, consume.New(consume.Config{Log: topics, Topic: event.TopicCDR, Group: group,
		Positions: x.positions, Limits: limits, Delay: x.metrics.delay, Lag: x.metrics.lag,
		NewBatch: func(int) consume.Batch { return &recordBatch{Index: x, tracer: trace} },
		Waits: func(partition int, action string, err error, wait time.Duration) {
			x.metrics.countRetry(action)
			x.log.Warn("partition processing paused", "doing", action, "partition", partition, "wait", wait,
				"error", err)
		},
		Moved: func(partition int) {
			x.metrics.errors.WithLabelValues(failedFence).Inc()
			x.log.Info("partition indexed by another process", "partition", partition)
		},
		Lost: func(partition int, at consume.Position, gap *kafka.GapError) {
			x.log.Error("call records lost from the cdr topic", "partition", partition, "kind", gap.Kind,
				"indexed", at.Offset, "resume", gap.Resume, "error", gap)
			if gap.Restarted() {
				x.metrics.restarts.WithLabelValues(string(gap.Kind)).Inc()
			}
			x.metrics.lost.Add(float64(gap.Lost()))
		},
	})}
}

// Run works until ctx ends, then returns nil.
func (i *Indexer) Run(ctx context.Context) error {
	var retention sync.WaitGroup
	defer retention.Wait()
	retentionCtx, cancelRetention := context.WithCancel(ctx)
	defer cancelRetention()
	retention.Go(func() { i.runRetention(retentionCtx) })
	if err := i.consumer.Run(ctx); err != nil {
		return fmt.Errorf("indexing call records: %w", err)
	}
	return nil
}
