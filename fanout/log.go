package fanout

import (
	"context"
	"time"

	"trunkline/internal/kafka"
)

// Log reads the normalized topic, the state and the partitions of accounts.
type Log interface {
	Partitions(ctx context.Context, topic string) (int, error)
	// Offsets returns the first offset of a partition and the one its next
	// record will get.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// OffsetAt returns the offset of the first record whose timestamp is at or
	// after at, or the one the next record will get.
	OffsetAt(ctx context.Context, topic string, partition int, at time.Time) (int64, error)
	// TopicID returns the id that the topic was given when it was created.
	TopicID(ctx context.Context, topic string) (kafka.TopicID, error)
	// EpochEnd returns where the records of a leader epoch end.
	EpochEnd(ctx context.Context, topic string, partition int, epoch int32) (kafka.EpochEnd, error)
	// Reader reads a partition from a position on. Where its leader epoch is known,
	// the first Read checks that the log goes on there.
	Reader(topic string, partition int, from kafka.LogPosition) Reader
	// CompactedReader reads a partition of a compacted topic.
	CompactedReader(topic string, partition int, offset int64) Reader
}

// Reader reads one partition from an offset on.
type Reader interface {
	// Read waits for records; they are valid until the next Read. Returns
	// *kafka.GapError when the log does not go on at the reader's offset.
	Read(ctx context.Context) ([]kafka.Record, error)
	// Lag returns how many offsets the log had beyond what Read has returned,
	// as of the last request.
	Lag() int64
	// Idle returns when the log last had nothing more. It may be called while
	// Read waits.
	Idle() time.Time
	// Position returns where the next Read starts. The topic's id is known after
	// the first Read.
	Position() kafka.LogPosition
	Close()
}

// ClusterLog is the Log of a Kafka cluster.
type ClusterLog struct{ *kafka.Cluster }

// Reader reads one partition from a position on.
func (l ClusterLog) Reader(topic string, partition int, from kafka.LogPosition) Reader {
	return l.OpenReader(kafka.ReaderConfig{Topic: topic, Partition: partition, From: from})
}

// atOffset is the position at an offset of which nothing else is known.
func atOffset(offset int64) kafka.LogPosition {
	return kafka.LogPosition{Offset: offset, LeaderEpoch: kafka.UnknownEpoch}
}

// CompactedReader reads a partition of a compacted topic from an offset on.
func (l ClusterLog) CompactedReader(topic string, partition int, offset int64) Reader {
	return l.OpenReader(kafka.ReaderConfig{Topic: topic, Partition: partition, Compacted: true, From: atOffset(offset)})
}
