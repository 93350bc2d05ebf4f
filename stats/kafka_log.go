package stats

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Log reads cc.evt as a consumer group, and cc.stats. NewKafkaLog returns the
// production implementation.
type Log interface {
	// Work runs work for each partition of cc.evt assigned to this process, until ctx
	// ends. It restarts a failed call. commit reports the next offset to the group,
	// only for the lag metric; the positions are on cc.stats.
	Work(ctx context.Context, work func(ctx context.Context, partition int, commit func(next int64)) error) error
	// Offsets returns the first offset of a partition and the offset of its next
	// record.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// ScanCompacted calls each for the records of a partition of a compacted topic
	// from offset from to its end, in order, and returns the offset of the end. It
	// calls reset before each (re)start of the scan.
	ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
		each func(*kafka.Record)) (end int64, err error)
	// TopicID returns a topic's id, which changes when the topic is recreated.
	TopicID(ctx context.Context, topic string) (kafka.TopicID, error)
	// CheckPosition returns *kafka.GapError if the records at a position were deleted
	// or truncated, or the topic was recreated.
	CheckPosition(ctx context.Context, topic string, partition int, at kafka.LogPosition) error
	// Read reads a partition of cc.evt from a position on.
	Read(partition int, from kafka.LogPosition) Reader
}

// Reader reads one partition in order. Its records are valid until the next Read.
// Read returns *kafka.GapError when the records at its position are lost.
type Reader interface {
	// Read waits for at least one record and returns the available records in order. They and all
	// memory that they refer to, except header names, are valid until the next Read. It returns
	// *kafka.GapError, an error of the broker, or the error of ctx; Read may then be called again.
	Read(ctx context.Context) ([]kafka.Record, error)
	Lag() int64      // number of offsets between the last record read and the end of the log
	Idle() time.Time // time at which the reader last reached the end of the log; zero: never
	// Close ends fetching and frees the reader's memory.
	Close()
}

// Producer writes to cc.stats and cc.raw.
type Producer interface {
	// Produce writes records and returns when all of them are durable.
	Produce(ctx context.Context, records ...kafka.Record) error
	// ProduceWithOffsets writes the records of one partition as one record batch, and returns
	// their offsets when they are durable. It keeps no reference to them.
	ProduceWithOffsets(ctx context.Context, records ...kafka.Record) (kafka.Appended, error)
}

// group is the consumer group of all processors.
const group = "trunkline-stats"

// NewKafkaLog returns the Log of a Kafka cluster.
func NewKafkaLog(c *kafka.Cluster) Log { return kafkaLog{c} }

type kafkaLog struct{ *kafka.Cluster }

func (l kafkaLog) Work(ctx context.Context, work func(context.Context, int, func(int64)) error) error {
	return l.RunGroup(ctx, kafka.GroupConfig{Group: group, Topics: []string{event.TopicEvents}},
		func(ctx context.Context, assigned *kafka.Assignment) error {
			return work(ctx, assigned.Partition, assigned.Commit)
		})
}

func (l kafkaLog) Read(partition int, from kafka.LogPosition) Reader {
	return l.OpenReader(kafka.ReaderConfig{Topic: event.TopicEvents, Partition: partition, From: from})
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
