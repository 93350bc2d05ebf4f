package figures

import (
	"context"
	"fmt"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
)

// group is the consumer group of all indexers.
const group = "trunkline-figures"

// limits bound a batch. It waits for records: a row that changes several times meanwhile is written once.
var limits = consume.Limits{Records: 5000, Bytes: 16 << 20, Time: 300 * time.Millisecond, Linger: true}

// Indexer writes the rows of cc.stats to the database. Several may run concurrently.
type Indexer struct {
	*Store
	consumer *consume.Consumer
	zones    func() map[string]*time.Location // of the accounts
}

// NewIndexer creates an indexer; zones returns the time zone of each account. It starts nothing;
// Run does.
func NewIndexer(s *Store, topics kafka.Log, zones func() map[string]*time.Location) *Indexer {
	return &Indexer{s, consume.New(consume.Config{Log: topics, Topic: event.TopicStats, Group: group, Compacted: true,
		Positions: s.positions, Limits: limits, Delay: s.metrics.delay,
		NewBatch: func(partition int) consume.Batch { return &batch{tables: s, partition: partition} },
		Waits: func(partition int, action string, err error, wait time.Duration) {
			s.metrics.retries.Inc()
			s.log.Warn("storing figures paused", "doing", action, "partition", partition, "wait", wait, "error", err)
		},
		Moved: func(partition int) {
			s.log.Info("partition's figures stored by another process", "partition", partition)
		},
		Lost: func(partition int, at consume.Position, gap *kafka.GapError) {
			s.log.Warn("figures topic does not continue at the stored offset, reading continues after the gap",
				"partition", partition, "kind", gap.Kind, "stored", at.Offset, "resume", gap.Resume)
		},
	}), zones}
}

// Run stores rows until ctx ends, then returns nil.
func (i *Indexer) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	ending, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() { i.runRetention(ending) })
	running.Go(func() { i.runDays(ending) })
	if err := i.consumer.Run(ctx); err != nil {
		return fmt.Errorf("storing figures: %w", err)
	}
	return nil
}
