package deadletter

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// eachPartition calls work for the partitions of cc.dead that have records.
func (s *Letters) eachPartition(ctx context.Context, work func(partition int, first, next int64) error) error {
	partitions, err := s.partitions(ctx)
	if err != nil {
		return err
	}

	for partition := range partitions {
		first, next, err := s.deps.LogReader.Offsets(ctx, event.TopicDead, partition)
		if err != nil {
			return err
		}

		if first == next {
			continue
		}
		if err := work(partition, first, next); err != nil {
			return err
		}
	}

	return nil
}

// partitions returns the number of partitions of cc.dead; 0 if the topic does not exist yet.
func (s *Letters) partitions(ctx context.Context) (int, error) {
	n, err := s.deps.LogReader.Partitions(ctx, event.TopicDead)
	if fault.KindOf(err) == fault.KindNotFound {
		return 0, nil
	}
	return n, err
}

// scan calls each for the records of a partition of cc.dead with offsets in [from, to), in order.
func (s *Letters) scan(ctx context.Context, partition int, from, to int64, each func(*kafka.Record)) error {
	if err := s.deps.LogReader.Scan(ctx, event.TopicDead, partition, from, to, each); err != nil {
		return fmt.Errorf("reading dead letters: %w", err)
	}
	return nil
}

// scanOpen calls each for the letters with offsets in [from, to) that were open when it was called.
func (s *Letters) scanOpen(ctx context.Context, partition int, from, to int64, each func(*Letter)) error {
	// Settlements come after their letters: those behind to count too.
	_, end, err := s.deps.LogReader.Offsets(ctx, event.TopicDead, partition)
	if err != nil {
		return err
	}

	settled, err := s.outcomes(ctx, partition, from, end)
	if err != nil {
		return err
	}

	return s.scan(ctx, partition, from, to, func(r *kafka.Record) {
		_, done := settled[r.Offset]
		if done || isSettlement(r) {
			return
		}
		l := newLetter(r)
		each(&l)
	})
}

// outcomes returns the outcomes, by offset, that the settlements with offsets in [from, to) tell.
func (s *Letters) outcomes(ctx context.Context, partition int, from, to int64) (map[int64]Outcome, error) {
	settled := map[int64]Outcome{}
	err := s.scan(ctx, partition, from, to, func(r *kafka.Record) {
		for field := range strings.FieldsSeq(string(r.Header(event.HeaderSettledOffsets))) {
			offset, err := strconv.ParseInt(field, 10, 64)
			if err == nil { // else another program has written it
				settled[offset] = Outcome(r.Header(event.HeaderSettledOutcome))
			}
		}
	})

	return settled, err
}

// isSettlement reports whether a record of cc.dead is no letter, but says what was done with some.
func isSettlement(r *kafka.Record) bool { return r.Header(event.HeaderSettledOffsets) != nil }

func noLetterAt(position event.Position) error {
	return fault.NotFound("there is no dead letter at %s", position)
}

// read reads one letter, which stays valid.
func (s *Letters) read(ctx context.Context, position event.Position) (*Letter, error) {
	partitions, err := s.partitions(ctx)
	if err != nil {
		return nil, err
	}

	if position.Partition >= partitions {
		return nil, noLetterAt(position)
	}

	first, next, err := s.deps.LogReader.Offsets(ctx, event.TopicDead, position.Partition)
	if err != nil {
		return nil, err
	}

	if position.Offset < first || position.Offset >= next {
		return nil, noLetterAt(position)
	}

	var found *kafka.Record
	err = s.scan(ctx, position.Partition, position.Offset, position.Offset+1,
		func(r *kafka.Record) { found = r.Clone() })
	switch {
	case err != nil:
		return nil, err
	case found == nil || isSettlement(found):
		return nil, noLetterAt(position)
	}

	l := newLetter(found)
	return &l, nil
}
