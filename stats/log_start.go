package stats

import (
	"context"
	"fmt"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// LogStart is the beginning of a partition of cc.evt, with its end.
type LogStart struct {
	First int64     // offset of the first record
	End   int64     // offset of the record that will be written next
	Time  time.Time // of the first event; zero when there is none
}

// FindLogStart returns the beginning of a partition of cc.evt.
func FindLogStart(ctx context.Context, log kafka.Log, partition int) (LogStart, error) {
	first, end, err := log.Offsets(ctx, event.TopicEvents, partition)
	if err != nil || first == end {
		return LogStart{First: first, End: end}, err
	}

	reader := log.Read(kafka.ReaderConfig{Topic: event.TopicEvents, Partition: partition, From: kafka.AtOffset(first)})
	defer reader.Close()

	records, err := reader.Read(ctx)
	if err != nil {
		return LogStart{}, fmt.Errorf("reading the first event of partition %d: %w", partition, err)
	}

	id, err := event.MessageID(records[0].Value)
	if err != nil {
		return LogStart{}, fmt.Errorf("reading the first event of partition %d: %w", partition, err)
	}

	return LogStart{First: first, End: end, Time: id.Time()}, nil
}

// isComplete reports whether no event of the partition was deleted.
func (s LogStart) isComplete() bool { return s.First == 0 }

// Earliest returns the start of the first interval, Unix seconds, that can be folded
// again exactly: 0 if the log is whole. If the start of the log was deleted, it is
// callExpiry later, when all calls of unknown origin have expired.
func (s LogStart) Earliest() int64 {
	if s.isComplete() || s.Time.IsZero() {
		return 0
	}
	return s.Time.Add(callExpiry + intervalGrid - time.Nanosecond).Truncate(intervalGrid).Unix()
}
