package stats

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Log reads cc.evt as a consumer group, and cc.stats. OnKafka is the real one.
type Log interface {
	// Work runs work for each partition of cc.evt that the group gives this
	// process, until ctx ends. Work that fails is started again. commit tells the
	// group how far it is, for those who watch; the truth is on cc.stats.
	Work(ctx context.Context, work func(ctx context.Context, partition int, commit func(next int64)) error) error
	// Offsets are the first offset in a partition and the one after its last.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// ScanCompacted calls each for the records of a partition of a compacted topic
	// from offset from to its end, in order, and returns the offset of the end. It
	// calls reset before the first record, and where it has to begin again.
	ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(), each func(*kafka.Record)) (end int64, err error)
	// TopicID is a topic's id, which changes when the topic is created again.
	TopicID(ctx context.Context, topic string) (kafka.TopicID, error)
	// CheckPosition returns *kafka.GapError when a partition's log does not go
	// on at a position.
	CheckPosition(ctx context.Context, topic string, partition int, at kafka.LogPosition) error
	// Read reads a partition of cc.evt from a position on.
	Read(partition int, from kafka.LogPosition) Reader
}

// Reader reads one partition in order. Its records are valid until the next Read.
// It fails with *kafka.GapError where the log does not go on at the offset it is
// at.
type Reader interface {
	Read(ctx context.Context) ([]kafka.Record, error)
	Lag() int64      // how many offsets lie between what was read and the end
	Idle() time.Time // when the end was last reached, zero: never
	Close()
}

// Producer writes to cc.stats and cc.raw.
type Producer interface {
	// Produce writes records and returns when all are durable.
	Produce(ctx context.Context, records ...kafka.Record) error
	// ProduceAt writes the records of one partition as one record batch, and
	// returns where they are when they are durable. It keeps no reference to them.
	ProduceAt(ctx context.Context, records ...kafka.Record) (kafka.Appended, error)
}

// Accounts tells which accounts exist.
type Accounts interface {
	Exists(ctx context.Context, account string) (bool, error)
}

// group is the consumer group of all processors.
const group = "trunkline-stats"

// OnKafka returns the Log of a Kafka cluster.
func OnKafka(c *kafka.Cluster) Log { return kafkaLog{c} }

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
