package fanout

import (
	"context"
	"time"

	"trunkline/internal/kafka"
)

// Log reads the normalized topic, the state, and the accounts' placements.
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
	// Reader reads a partition from a position on. If its leader epoch is known, the
	// first Read checks that the log continues there.
	Reader(topic string, partition int, from kafka.LogPosition) Reader
	// CompactedReader reads a partition of a compacted topic.
	CompactedReader(topic string, partition int, offset int64) Reader
}

// Reader reads one partition from an offset on.
type Reader interface {
	// Read waits for records; they are valid until the next Read. It returns
	// *kafka.GapError when the log does not continue at the reader's offset.
	Read(ctx context.Context) ([]kafka.Record, error)
	// Lag returns the number of offsets in the log beyond the last result of Read, as
	// of the last request.
	Lag() int64
	// Idle returns the time at which the reader last reached the end of the log. It
	// may be called while Read waits.
	Idle() time.Time
	// Position returns where the next Read starts. The topic's id is known after
	// the first Read.
	Position() kafka.LogPosition
	// Close ends fetching and frees the reader's memory.
	Close()
}

// KafkaLog is the Log of a Kafka cluster.
type KafkaLog struct{ *kafka.Cluster }

// Reader reads one partition from a position on.
func (l KafkaLog) Reader(topic string, partition int, from kafka.LogPosition) Reader {
	return l.OpenReader(kafka.ReaderConfig{Topic: topic, Partition: partition, From: from})
}

// atOffset returns the position at an offset, with everything else unknown.
func atOffset(offset int64) kafka.LogPosition {
	return kafka.LogPosition{Offset: offset, LeaderEpoch: kafka.UnknownEpoch}
}

// CompactedReader reads a partition of a compacted topic from an offset on.
func (l KafkaLog) CompactedReader(topic string, partition int, offset int64) Reader {
	return l.OpenReader(kafka.ReaderConfig{Topic: topic, Partition: partition, Compacted: true, From: atOffset(offset)})
}
