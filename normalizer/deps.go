package normalizer

import (
	"context"

	"trunkline/internal/kafka"
)

// Log reads the raw topics as a consumer group, and the end of the normalized
// ones. OnKafka is the real one.
type Log interface {
	// Work runs work for each partition the group gives this process, until
	// ctx ends. Work that fails is started again.
	Work(ctx context.Context, group string, topics []string, work func(context.Context, Assignment) error) error
	// Offsets are the first offset in a partition and the one after its last.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// Scan calls each for the records from offset from to before to, in order.
	// It leaves out what was deleted or is damaged. A record is valid during
	// its call.
	Scan(ctx context.Context, topic string, partition int, from, to int64, each func(*kafka.Record)) error
	// ScanCompacted calls each for the records of a partition of a compacted topic
	// from offset from to its end, in order, and returns the offset of the end. It
	// calls reset before the first record, and where it has to begin again.
	ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(), each func(*kafka.Record)) (end int64, err error)
	// TopicID is a topic's id, which changes when the topic is created again.
	TopicID(ctx context.Context, topic string) (kafka.TopicID, error)
	// CheckPosition returns *kafka.GapError when a partition's log does not go
	// on at a position.
	CheckPosition(ctx context.Context, topic string, partition int, at kafka.LogPosition) error
	// Read reads a partition from a position on.
	Read(topic string, partition int, from kafka.LogPosition) Reader
}

// Reader reads one partition in order. Its records are valid until the next
// Read. It fails with *kafka.GapError where the log does not go on at the
// offset it is at.
type Reader interface {
	Read(ctx context.Context) ([]kafka.Record, error)
	Close()
}

// Assignment is one raw partition given to this process.
type Assignment struct {
	Topic     string
	Partition int
	Progress
}

// Progress is the group's position in a partition: the next offset to work on,
// which Commit moves up.
type Progress interface {
	Committed() (next int64, ok bool)
	Commit(next int64)
	// Rewind commits an offset below the one committed before.
	Rewind(next int64)
}

// Producer writes records, in order within each partition, and returns nil
// only when all are durable. It keeps no reference to them.
type Producer interface {
	Produce(ctx context.Context, records ...kafka.Record) error
	// ProduceAt is Produce of records of one partition, and returns where they are.
	ProduceAt(ctx context.Context, records ...kafka.Record) (kafka.Appended, error)
}

// Accounts knows which accounts exist. Exists is asked for every record: it
// answers from memory for an account it knows, and asks the database before it
// says no, since the account may be a second old. An error says that it cannot
// tell: fault.Unavailable is asked again.
type Accounts interface {
	Exists(ctx context.Context, id string) (bool, error)
}

// OnKafka returns the Log of a Kafka cluster.
func OnKafka(c *kafka.Cluster) Log { return kafkaLog{c} }

type kafkaLog struct{ *kafka.Cluster }

func (l kafkaLog) Work(ctx context.Context, group string, topics []string, work func(context.Context, Assignment) error) error {
	return l.RunGroup(ctx, kafka.GroupConfig{Group: group, Topics: topics}, func(ctx context.Context, assigned *kafka.Assignment) error {
		return work(ctx, Assignment{Topic: assigned.Topic, Partition: assigned.Partition, Progress: assigned})
	})
}

func (l kafkaLog) Read(topic string, partition int, from kafka.LogPosition) Reader {
	return l.OpenReader(kafka.ReaderConfig{Topic: topic, Partition: partition, From: from})
}
