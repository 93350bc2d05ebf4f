package feed

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// stateReader reads the state from cc.state. It is not safe for concurrent use.
type stateReader struct {
	log        Log // Kafka's
	partitions []*statePartition
}

// statePartition is the state of one partition.
type statePartition struct {
	view           *state.View
	next           int64 // offset of cc.state to read next
	requiredOffset int64 // offset of cc.raw that the state has to include; -1 if none
}

func newStateReader(log Log) *stateReader { return &stateReader{log: log} }

const (
	statePoll = 50 * time.Millisecond
	// stallTimeout is the time without progress of the state after which it is used although it is
	// incomplete.
	stallTimeout     = 3 * time.Second
	maxParallelReads = 8
)

// catchUp reads the state until it includes the records that cc.raw has now. stalled means that the
// state stopped advancing before.
func (s *stateReader) catchUp(ctx context.Context) (stalled bool, err error) {
	if err := s.read(ctx); err != nil {
		return false, err
	}
	// After the first read, which finds the partitions.
	if err := s.setRequiredOffsets(ctx); err != nil {
		return false, err
	}

	last, advancedAt := s.sumIncluded(), time.Now()
	for {
		incomplete, included := s.incompletePartitions(), s.sumIncluded()
		if incomplete == 0 {
			return false, nil
		}
		if included != last {
			last, advancedAt = included, time.Now()
		}
		// A correction by an old state is better than none: the normalizer may be down for long.
		if time.Since(advancedAt) > stallTimeout {
			return true, nil
		}
		if !retry.Sleep(ctx, statePoll) {
			return false, context.Cause(ctx)
		}

		if err := s.read(ctx); err != nil {
			return false, err
		}
	}
}

// read reads the records that were added to cc.state since the last call.
func (s *stateReader) read(ctx context.Context) error {
	n, err := s.log.Partitions(ctx, event.TopicState)
	if err != nil {
		return err
	}

	for len(s.partitions) < n {
		s.partitions = append(s.partitions, &statePartition{view: state.NewView(), requiredOffset: -1})
	}

	return s.eachPartition(ctx, func(ctx context.Context, p int, part *statePartition) (err error) {
		// Repeated records change nothing.
		part.next, err = s.log.ScanCompacted(ctx, event.TopicState, p, part.next, func() {}, func(r *kafka.Record) {
			// The normalizer reports records that cannot be parsed.
			record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
			if err == nil {
				part.view.Apply(record)
			}
		})

		return err
	})
}

// eachPartition calls work for the partitions, at most maxParallelReads at a time.
func (s *stateReader) eachPartition(ctx context.Context, work func(context.Context, int, *statePartition) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallelReads)
	for p, part := range s.partitions {
		group.Go(func() error { return work(ctx, p, part) })
	}
	return group.Wait()
}

// setRequiredOffsets finds the last record in each partition of cc.raw. Repeats and dead letters also advance
// the position of the state.
func (s *stateReader) setRequiredOffsets(ctx context.Context) error {
	n, err := s.log.Partitions(ctx, event.TopicRaw)
	if err != nil {
		return err
	}

	return s.eachPartition(ctx, func(ctx context.Context, p int, part *statePartition) error {
		part.requiredOffset = -1
		if p >= n {
			return nil
		}

		first, next, err := s.log.Offsets(ctx, event.TopicRaw, p)
		if err == nil && first < next {
			part.requiredOffset = next - 1
		}

		return err
	})
}

// includedOffset returns the last offset of cc.raw that the state includes.
func (p *statePartition) includedOffset() int64 {
	at := p.view.Position()
	if at == nil {
		return -1
	}
	position, err := event.ParsePosition(at.SourcePosition)
	if err != nil {
		return -1
	}
	return position.Offset
}

// incompletePartitions returns the number of partitions in which the state is incomplete.
func (s *stateReader) incompletePartitions() (n int) {
	for _, part := range s.partitions {
		if part.includedOffset() < part.requiredOffset {
			n++
		}
	}
	return n
}

// sumIncluded returns a number that increases while the state advances.
func (s *stateReader) sumIncluded() (sum int64) {
	for _, part := range s.partitions {
		sum += part.includedOffset()
	}
	return sum
}

// entries returns all entries. If a key is in several partitions, it returns the entry of the latest
// event.
func (s *stateReader) entries() []*state.Entry {
	latest := map[state.Key]*state.Entry{}
	for _, part := range s.partitions {
		part.view.All(func(e *state.Entry) {
			before := latest[e.Key()]
			if before == nil || before.EventID < e.EventID {
				latest[e.Key()] = e
			}
		})
	}

	return slices.Collect(maps.Values(latest))
}
