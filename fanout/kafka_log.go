package fanout

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Log reads the normalized topic, the state, and the accounts' partitions; kafka.ClusterLog is one.
type Log interface {
	// Partitions returns the number of partitions of a topic. It is not cached.
	Partitions(ctx context.Context, topic string) (int, error)
	// KnownPartitions is Partitions, up to half a minute late: it asks no broker about a topic
	// that is read.
	KnownPartitions(ctx context.Context, topic string) (int, error)
	// Offsets returns the first offset of a partition and the offset of its next
	// record.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// OffsetAt returns the offset of the first record whose timestamp is at or after
	// at, or the offset of the next record if there is none.
	OffsetAt(ctx context.Context, topic string, partition int, at time.Time) (int64, error)
	// TopicID returns the id that Kafka assigned when the topic was created.
	TopicID(ctx context.Context, topic string) (kafka.TopicID, error)
	// EpochEnd returns the offset after the last record of a leader epoch.
	EpochEnd(ctx context.Context, topic string, partition int, epoch int32) (kafka.EpochEnd, error)
	// Read returns a reader of one partition. If the leader epoch of its position is known, the
	// first Read checks that the log continues there.
	Read(cfg kafka.ReaderConfig) kafka.Source
}

// readEvents returns a reader of a partition of cc.evt.
func readEvents(log Log, partition int, from kafka.LogPosition) kafka.Source {
	return log.Read(kafka.ReaderConfig{Topic: event.TopicEvents, Partition: partition, From: from})
}

// readCompacted returns a reader of a partition of a compacted topic from an offset on.
func readCompacted(log Log, topic string, partition int, offset int64) kafka.Source {
	return log.Read(kafka.ReaderConfig{Topic: topic, Partition: partition, Compacted: true,
		From: kafka.AtOffset(offset)})
}
