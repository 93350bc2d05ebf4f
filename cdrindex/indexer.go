package cdrindex

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// Indexer brings the cdr topic into the index. Any number may run, in one
// process or many.
type Indexer struct {
	*Index
	topic Topic
	trace *tracing.Tracer // nil: tracing is off
	turns chan struct{}   // held while a batch is written
}

// NewIndexer makes an indexer. It does nothing before Run. Without a tracer there
// are no spans.
func NewIndexer(index *Index, topic Topic, trace *tracing.Tracer) *Indexer {
	return &Indexer{Index: index, topic: topic, trace: trace, turns: make(chan struct{}, index.cfg.Batches)}
}

// Run works until ctx ends, then returns nil.
func (i *Indexer) Run(ctx context.Context) error {
	var sweeping sync.WaitGroup
	defer sweeping.Wait()
	sweepContext, stop := context.WithCancel(ctx)
	defer stop()
	sweeping.Go(func() { i.sweep(sweepContext) })
	if err := i.topic.Work(ctx, i.work); err != nil {
		return fmt.Errorf("indexing call records: %w", err)
	}
	return nil
}

// work indexes one partition until ctx ends or something unexpected happens;
// then the group starts it again.
func (i *Indexer) work(ctx context.Context, partition int, done func(next int64)) error {
	oldest, end := i.metrics.lag.lane(partition)
	defer end()
	l := &lane{Indexer: i, partition: partition, done: done, oldest: oldest}
	for {
		err := l.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errFenced):
			i.metrics.errors.WithLabelValues(failedFence).Inc()
			i.log.Info("another indexer was faster, going on from where it is", "partition", partition)
		default:
			if err = l.skipHole(ctx, err); err != nil && !errors.Is(err, errFenced) {
				return fmt.Errorf("indexing partition %d: %w", partition, err)
			}
		}
	}
}

// skipHole looks at why reading failed. Where the topic has no sound record it
// moves behind the hole: what is lost is said and counted, never hidden.
func (l *lane) skipHole(ctx context.Context, err error) error {
	gap, ok := kafka.PassableGap(err)
	if !ok {
		return err
	}
	to := l.at
	to.next = gap.Resume
	if gap.Restarted() {
		to.next = gap.First
		to.epoch++
	}
	l.log.Error("records are not in the cdr topic any more, going on behind them",
		"partition", l.partition, "wanted", l.at.next, "from", to.next, "err", err)
	if err := l.persist(ctx, "skipping", func() error { return l.skip(ctx, l.partition, l.at, to) }); err != nil {
		return err
	}
	l.metrics.lost.Add(float64(max(to.next-l.at.next, 0)))
	return nil
}

func unavailable(err error) bool { return fault.KindOf(err) == fault.KindUnavailable }
