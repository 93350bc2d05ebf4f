package webhook

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Topic reads the topic cc.evt; see NewKafkaTopic.
type Topic interface {
	// Work calls work for each partition that the consumer group assigns to this process,
	// until ctx ends. It restarts a failed call. commit commits the next offset to the
	// group, which only its lag needs; the positions are in the database.
	Work(ctx context.Context, work func(ctx context.Context, partition int, commit func(next int64)) error) error
	// Partitions returns the number of partitions of a topic. It is not cached.
	Partitions(ctx context.Context) (int, error)
	// Offsets returns the first offset of a partition and that of its next record.
	Offsets(ctx context.Context, partition int) (first, next int64, err error)
	// OffsetAt returns the offset of the first record at or after a time, or that of the
	// next record if there is none.
	OffsetAt(ctx context.Context, partition int, at time.Time) (int64, error)
	// TopicID returns a topic's id, which may be up to two seconds old. It returns
	// fault.KindNotFound if there is no such topic.
	TopicID(ctx context.Context) (kafka.TopicID, error)
	// CheckPosition returns *kafka.GapError if the records at a position were deleted or
	// truncated, or the topic was recreated.
	CheckPosition(ctx context.Context, partition int, at kafka.LogPosition) error
	// Read returns a reader of a partition that begins at a position.
	Read(partition int, from kafka.LogPosition) Reader
}

// Reader reads one partition in order. Its records are valid until the next Read. Read
// returns *kafka.GapError if the records at its position are lost.
type Reader interface {
	// Read waits for at least one record and returns the available records in order. They and all
	// memory that they refer to, except header names, are valid until the next Read. It returns
	// *kafka.GapError, an error of the broker, or the error of ctx; Read may then be called again.
	Read(ctx context.Context) ([]kafka.Record, error)
	Position() kafka.LogPosition // at which the next Read starts
	// Close ends fetching and frees the reader's memory.
	Close()
}

// consumerGroup is the consumer group of all nodes that deliver.
const consumerGroup = "trunkline-webhook"

// NewKafkaTopic returns the Topic of a Kafka cluster.
func NewKafkaTopic(c *kafka.Cluster) Topic { return kafkaTopic{c} }

type kafkaTopic struct{ cluster *kafka.Cluster }

func (t kafkaTopic) Work(ctx context.Context, work func(context.Context, int, func(int64)) error) error {
	return t.cluster.RunGroup(ctx, kafka.GroupConfig{Group: consumerGroup, Topics: []string{event.TopicEvents}},
		func(ctx context.Context, assigned *kafka.Assignment) error {
			return work(ctx, assigned.Partition, assigned.Commit)
		})
}

func (t kafkaTopic) Partitions(ctx context.Context) (int, error) {
	return t.cluster.Partitions(ctx, event.TopicEvents)
}

func (t kafkaTopic) Offsets(ctx context.Context, partition int) (first, next int64, err error) {
	return t.cluster.Offsets(ctx, event.TopicEvents, partition)
}

func (t kafkaTopic) OffsetAt(ctx context.Context, partition int, at time.Time) (int64, error) {
	return t.cluster.OffsetAt(ctx, event.TopicEvents, partition, at)
}

func (t kafkaTopic) TopicID(ctx context.Context) (kafka.TopicID, error) {
	return t.cluster.TopicID(ctx, event.TopicEvents)
}

func (t kafkaTopic) CheckPosition(ctx context.Context, partition int, at kafka.LogPosition) error {
	return t.cluster.CheckPosition(ctx, event.TopicEvents, partition, at)
}

func (t kafkaTopic) Read(partition int, from kafka.LogPosition) Reader {
	return t.cluster.OpenReader(kafka.ReaderConfig{Topic: event.TopicEvents, Partition: partition, From: from})
}

// atOffset returns the position at an offset, with unknown topic id and leader epoch.
func atOffset(offset int64) kafka.LogPosition {
	return kafka.LogPosition{Offset: offset, LeaderEpoch: kafka.UnknownEpoch}
}
