package webhook

import (
	"context"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// Topic reads the topic cc.evt; see NewKafkaTopic.
type Topic interface {
	// Work runs work for each partition that the consumer group gives this process,
	// until ctx ends. A failed call is restarted. commit reports the next offset to the
	// group, for its lag only; the positions are in the database.
	Work(ctx context.Context, work func(ctx context.Context, partition int, commit func(next int64)) error) error
	Partitions(ctx context.Context) (int, error)
	// Offsets returns the first offset of a partition and the one its next record gets.
	Offsets(ctx context.Context, partition int) (first, next int64, err error)
	// OffsetAt returns the offset of the first record at or after a time, or the one the
	// next record gets.
	OffsetAt(ctx context.Context, partition int, at time.Time) (int64, error)
	TopicID(ctx context.Context) (kafka.TopicID, error)
	// CheckPosition returns *kafka.GapError when the records at a position were
	// deleted or truncated, or the topic was recreated.
	CheckPosition(ctx context.Context, partition int, at kafka.LogPosition) error
	// Read reads a partition from a position on.
	Read(partition int, from kafka.LogPosition) Reader
}

// Reader reads one partition in order. Its records are valid until the next Read. Read
// returns *kafka.GapError when the records at its position are lost.
type Reader interface {
	Read(ctx context.Context) ([]kafka.Record, error)
	Position() kafka.LogPosition // at which the next Read starts
	Close()
}

// group is the consumer group of all nodes that deliver.
const group = "trunkline-webhook"

// NewKafkaTopic returns the Topic of a Kafka cluster.
func NewKafkaTopic(c *kafka.Cluster) Topic { return kafkaTopic{c} }

type kafkaTopic struct{ cluster *kafka.Cluster }

func (t kafkaTopic) Work(ctx context.Context, work func(context.Context, int, func(int64)) error) error {
	return t.cluster.RunGroup(ctx, kafka.GroupConfig{Group: group, Topics: []string{event.TopicEvents}},
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

// endPositions returns the end of every partition.
func endPositions(ctx context.Context, topic Topic) ([]position, error) {
	return eachPartition(ctx, topic, func(ctx context.Context, p *position) (err error) {
		_, p.next, err = topic.Offsets(ctx, p.partition)
		return err
	})
}

// positionsAfter returns the positions from which all events with a later id are
// read. Returns fault.KindGone when the event was never in the topic or was deleted by
// retention.
func positionsAfter(ctx context.Context, topic Topic, id event.ID) ([]position, error) {
	all, err := eachPartition(ctx, topic, func(ctx context.Context, p *position) (err error) {
		p.lastID = id
		p.next, err = topic.OffsetAt(ctx, p.partition, time.UnixMilli(id.Milli()))
		return err
	})
	if err != nil {
		return nil, err
	}
	if id.Partition() >= len(all) {
		return nil, noSuchEvent()
	}
	return all, checkEvent(ctx, topic, id, all[id.Partition()].next)
}

// checkEvent returns fault.KindGone unless the event is in its partition, at or after
// the offset.
func checkEvent(ctx context.Context, topic Topic, id event.ID, offset int64) error {
	_, end, err := topic.Offsets(ctx, id.Partition())
	if err != nil {
		return err
	}
	reader := topic.Read(id.Partition(), atOffset(offset))
	defer reader.Close()
	for reader.Position().Offset < end {
		records, err := reader.Read(ctx)
		if _, gap := kafka.PassableGap(err); gap {
			return noSuchEvent()
		}
		if err != nil {
			return err
		}
		for i := range records {
			switch found, err := event.MessageID(records[i].Value); {
			case err != nil:
			case found == id:
				return nil
			case found > id:
				return noSuchEvent()
			}
		}
	}
	return noSuchEvent()
}

func noSuchEvent() error { return fault.New(fault.KindGone, "no such event in the log") }

// eachPartition calls fill for the position of each partition, for all at once.
func eachPartition(ctx context.Context, topic Topic, fill func(context.Context, *position) error) ([]position, error) {
	n, err := topic.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	all, failed := make([]position, n), make([]error, n)
	var asking sync.WaitGroup
	for i := range all {
		all[i].partition = i
		asking.Go(func() { failed[i] = fill(ctx, &all[i]) })
	}
	asking.Wait()
	for _, err := range failed {
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
