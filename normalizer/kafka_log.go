package normalizer

import (
	"context"

	"trunkline/internal/kafka"
)

// Log reads the raw topics as a consumer group, and the end of the normalized topics.
// NewKafkaLog returns the production implementation.
type Log interface {
	// Work runs work for each partition assigned to this process, until ctx ends. It
	// restarts a failed call.
	Work(ctx context.Context, group string, topics []string, work func(context.Context, Assignment) error) error
	// Offsets returns the first offset of a partition and the offset of its next
	// record.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// Scan calls each for the records with offsets in [from, to), in order. It skips
	// deleted and damaged records. A record is valid during its call only.
	Scan(ctx context.Context, topic string, partition int, from, to int64, each func(*kafka.Record)) error
	// ScanCompacted calls each for the records of a partition of a compacted topic
	// from offset from to its end, in order, and returns the offset of the end. It
	// calls reset before each (re)start of the scan.
	ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
		each func(*kafka.Record)) (end int64, err error)
	// TopicID returns a topic's id, which changes when the topic is recreated.
	TopicID(ctx context.Context, topic string) (kafka.TopicID, error)
	// CheckPosition returns *kafka.GapError if the records at a position were deleted
	// or truncated, or the topic was recreated.
	CheckPosition(ctx context.Context, topic string, partition int, position kafka.LogPosition) error
	// Read reads a partition from a position on.
	Read(topic string, partition int, from kafka.LogPosition) Reader
}

// Reader reads one partition in order. Its records are valid until the next
// Read. Read returns *kafka.GapError when the records at its position are lost.
type Reader interface {
	// Read waits for at least one record and returns the available records in order. They and all
	// memory that they refer to, except header names, are valid until the next Read. It returns
	// *kafka.GapError, an error of the broker, or the error of ctx; Read may then be called again.
	Read(ctx context.Context) ([]kafka.Record, error)
	// Close ends fetching and frees the reader's memory.
	Close()
}

// Assignment is a raw partition assigned to this process.
type Assignment struct {
	Topic     string
	Partition int
	Progress
}

// Progress is the committed offset of the group in a partition: the offset of the next
// record to process.
type Progress interface {
	// Committed returns the committed offset; ok is false when there is none.
	Committed() (next int64, ok bool)
	// Commit commits an offset. It ignores one below that of the previous call.
	Commit(next int64)
	// Rewind commits an offset below that of the previous call.
	Rewind(next int64)
}

// Producer writes records, in order within each partition, and returns nil only if all
// of them are durable. It keeps no reference to them.
type Producer interface {
	// Produce writes the records and returns nil only if all of them are durable. It copies them at
	// once. If a record is larger than topics.MaxRecordBytes, it returns fault.KindTooLarge and
	// sends none. kafka.ErrTopicLimit means that the topic rejects at least one record, and that all
	// others are durable. Any other error means that at least one record is not known to be
	// durable; if it wraps kafka.ErrOutcomeUnknown, as after the end of ctx, some may have been written
	// all the same.
	Produce(ctx context.Context, records ...kafka.Record) error
	// ProduceWithOffsets is like Produce for records of one partition, and returns their
	// offsets.
	ProduceWithOffsets(ctx context.Context, records ...kafka.Record) (kafka.Appended, error)
}

// NewKafkaLog returns the Log of a Kafka cluster.
func NewKafkaLog(c *kafka.Cluster) Log { return kafkaLog{c} }

type kafkaLog struct{ *kafka.Cluster }

func (l kafkaLog) Work(ctx context.Context, group string, topics []string,
	work func(context.Context, Assignment) error) error {
	return l.RunGroup(ctx, kafka.GroupConfig{Group: group, Topics: topics},
		func(ctx context.Context, assigned *kafka.Assignment) error {
			return work(ctx, Assignment{Topic: assigned.Topic, Partition: assigned.Partition, Progress: assigned})
		})
}

func (l kafkaLog) Read(topic string, partition int, from kafka.LogPosition) Reader {
	return l.OpenReader(kafka.ReaderConfig{Topic: topic, Partition: partition, From: from})
}

// The look-ups wait for a partition that is missing: those of topics that follow another are
// added after the group has assigned the others.

func (l kafkaLog) Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error) {
	first, next, err = l.Cluster.Offsets(ctx, topic, partition)
	return first, next, kafka.AwaitMissing(err)
}

func (l kafkaLog) ScanCompacted(
	ctx context.Context, topic string, partition int, from int64, reset func(), each func(*kafka.Record),
) (int64, error) {
	end, err := l.Cluster.ScanCompacted(ctx, topic, partition, from, reset, each)
	return end, kafka.AwaitMissing(err)
}

func (l kafkaLog) TopicID(ctx context.Context, topic string) (kafka.TopicID, error) {
	id, err := l.Cluster.TopicID(ctx, topic)
	return id, kafka.AwaitMissing(err)
}

func (l kafkaLog) CheckPosition(ctx context.Context, topic string, partition int, position kafka.LogPosition) error {
	return kafka.AwaitMissing(l.Cluster.CheckPosition(ctx, topic, partition, position))
}
