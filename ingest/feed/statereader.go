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
	log   Log
	parts []*statePart
}

// statePart is the state of one partition.
type statePart struct {
	view *state.View
	next int64 // offset of cc.state
	need int64 // offset of cc.raw that the state has to include; -1 if none
}

func newStateReader(log Log) *stateReader { return &stateReader{log: log} }

const (
	statePoll = 50 * time.Millisecond
	// stateStall is the time without progress of the state after which it is used although it is
	// incomplete.
	stateStall     = 3 * time.Second
	partitionReads = 8
)

// catchUp reads the state until it includes the records that cc.raw has now. stalled means that the
// state stopped advancing before.
func (s *stateReader) catchUp(ctx context.Context) (stalled bool, err error) {
	if err := s.read(ctx); err != nil {
		return false, err
	}
	if err := s.findNeeds(ctx); err != nil {
		return false, err
	}
	last, moved := s.covered(), time.Now()
	for {
		open, covered := s.open(), s.covered()
		if open == 0 {
			return false, nil
		}
		if covered != last {
			last, moved = covered, time.Now()
		}
		if time.Since(moved) > stateStall {
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
	for len(s.parts) < n {
		s.parts = append(s.parts, &statePart{view: state.NewView(), need: -1})
	}
	return s.each(ctx, func(ctx context.Context, p int, part *statePart) (err error) {
		// Repeated records change nothing.
		part.next, err = s.log.ScanCompacted(ctx, event.TopicState, p, part.next, func() {}, func(r *kafka.Record) {
			// The normalizer reports records that cannot be parsed.
			if record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID)); err == nil {
				part.view.Apply(record)
			}
		})
		return err
	})
}

func (s *stateReader) each(ctx context.Context, work func(context.Context, int, *statePart) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partitionReads)
	for p, part := range s.parts {
		group.Go(func() error { return work(ctx, p, part) })
	}
	return group.Wait()
}

// findNeeds finds the last record in each partition of cc.raw. Repeats and dead letters also advance
// the position of the state.
func (s *stateReader) findNeeds(ctx context.Context) error {
	n, err := s.log.Partitions(ctx, event.TopicRaw)
	if err != nil {
		return err
	}
	return s.each(ctx, func(ctx context.Context, p int, part *statePart) error {
		part.need = -1
		if p >= n {
			return nil
		}
		first, next, err := s.log.Offsets(ctx, event.TopicRaw, p)
		if err == nil && first < next {
			part.need = next - 1
		}
		return err
	})
}

// included returns the last offset of cc.raw that the state includes.
func (p *statePart) included() int64 {
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

// open returns the number of partitions in which the state is incomplete.
func (s *stateReader) open() (n int) {
	for _, part := range s.parts {
		if part.included() < part.need {
			n++
		}
	}
	return n
}

// covered returns a number that increases while the state advances.
func (s *stateReader) covered() (sum int64) {
	for _, part := range s.parts {
		sum += part.included()
	}
	return sum
}

// entries returns all entries. If a key is in several partitions, it returns the entry of the latest
// event.
func (s *stateReader) entries() []*state.Entry {
	latest := map[state.Key]*state.Entry{}
	for _, part := range s.parts {
		part.view.All(func(e *state.Entry) {
			if before := latest[e.Key()]; before == nil || before.EventID < e.EventID {
				latest[e.Key()] = e
			}
		})
	}
	return slices.Collect(maps.Values(latest))
}
