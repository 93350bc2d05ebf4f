package normalizer

import (
	"bytes"
	"context"
	"maps"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// lastRecords holds the last record of each key, which compaction keeps.
type lastRecords struct {
	entries  map[state.Key]state.Record // including tombstones
	position *state.Position
}

func (l *lastRecords) add(r state.Record) {
	if r.Position != nil {
		l.position = r.Position
	} else {
		l.entries[r.Key()] = r
	}
}

// checkOverlap reads the records of the topic that this writer may not have written.
// Compaction keeps the last record of each key: if a record of another normalizer,
// which had not stopped yet, is the last one, the held value is written again.
func (s *stateWriter) checkOverlap(ctx context.Context) error {
	last, end, err := s.readFrom(ctx, s.next)
	if err != nil {
		return err
	}

	if end < s.next {
		return s.repairLoss(ctx, end)
	}

	s.next = end
	maps.Copy(s.lastByOthers, last.entries)
	s.repairDue = true

	s.mu.Lock()
	defer s.mu.Unlock()
	if last.position != nil && last.position.Behind(&s.position) {
		s.positionChanged = true
	}

	return nil
}

// repairLoss compares the topic, which lost its records from offset end on, with the
// values that it must have, and schedules those that it lost to be written again. Until
// then positions are incomplete.
func (s *stateWriter) repairLoss(ctx context.Context, end int64) error {
	s.worker.metrics.restarts.WithLabelValues(event.TopicState, string(kafka.GapTruncated)).Inc()
	s.worker.log.Error("state topic truncated, what it lost is written again", "topic", event.TopicState,
		"partition", s.worker.Partition,
		"written", s.next, "end", end)
	last, end, err := s.readFrom(ctx, 0)
	if err != nil {
		return err
	}

	s.next, s.lastByOthers = end, last.entries
	for key, v := range s.wantedValues {
		if _, ok := last.entries[key]; !ok {
			s.rewrites[key] = state.Change{Key: key, Value: v}
		}
	}

	s.repairDue, s.repairsLoss = true, true

	s.mu.Lock()
	defer s.mu.Unlock()
	s.positionChanged = true
	return nil
}

// readFrom returns the last records of the keys from an offset on, and the end of the
// topic.
func (s *stateWriter) readFrom(ctx context.Context, from int64) (last lastRecords, end int64, err error) {
	err = s.worker.retry(ctx, "checking the state", func() (err error) {
		reset := func() { last = lastRecords{entries: map[state.Key]state.Record{}} }
		end, err = s.worker.deps.LogReader.ScanCompacted(ctx, event.TopicState, s.worker.Partition, from, reset,
			func(r *kafka.Record) {
				record, err := state.ParseRecord(string(r.Key), r.Value, r.Header(state.HeaderEventID))
				if err == nil { // else written by another program
					last.add(record)
				}
			})

		return err
	})

	return last, end, err
}

// collectRewrites collects the wanted values to write again after another normalizer has
// overwritten them, or the topic has lost them. If that normalizer is ahead, repair waits until this one has
// reached its position. The caller holds mu, and nothing is pending.
func (s *stateWriter) collectRewrites() {
	repaired := 0
	for key, r := range s.lastByOthers {
		if r.EventID > s.wantedPosition.EventID {
			continue
		}

		delete(s.lastByOthers, key)
		wanted, last := s.wantedValues[key], r.Value()
		if wanted == nil && last == nil ||
			wanted != nil && last != nil && bytes.Equal(wanted.Append(nil), last.Append(nil)) {
			continue
		}

		c := state.Change{Key: key, Value: wanted, EventID: s.wantedPosition.EventID}
		s.rewrites[key] = c
		repaired++
	}

	if repaired > 0 && !s.repairsLoss {
		s.worker.metrics.stateRepairs.Add(float64(repaired))
		s.worker.log.Warn("state overwritten by another normalizer, written again", "topic", event.TopicState,
			"partition", s.worker.Partition, "records", repaired)
	}
}
