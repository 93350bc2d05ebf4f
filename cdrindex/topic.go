package cdrindex

import (
	"context"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Topic reads the cdr topic; see NewKafkaTopic.
type Topic interface {
	// Work runs work for each partition the group gives this process, until
	// ctx ends. A failed call is restarted. done reports the next offset to the group,
	// for its lag only; the positions are in the database.
	Work(ctx context.Context, work func(ctx context.Context, partition int, done func(next int64)) error) error
	// Partitions returns the number of partitions of a topic. It is not cached.
	Partitions(ctx context.Context) (int, error)
	// Offsets returns the first offset of a partition and the one after its last.
	Offsets(ctx context.Context, partition int) (first, next int64, err error)
	// TopicID returns the topic's id, which changes when the topic is recreated.
	TopicID(ctx context.Context) (kafka.TopicID, error)
	// CheckPosition returns *kafka.GapError when the records at a position were
	// deleted or truncated, or the topic was recreated.
	CheckPosition(ctx context.Context, partition int, position kafka.LogPosition) error
	// Read reads a partition from a position on.
	Read(partition int, from kafka.LogPosition) Reader
}

// Reader reads one partition in order. Its records are valid until the next
// Read. Read returns *kafka.GapError when the records at its position are lost.
type Reader interface {
	// Read waits for at least one record and returns the available records in order. They and all
	// memory that they refer to, except header names, are valid until the next Read. It returns
	// *kafka.GapError, an error of the broker, or the error of ctx; Read may then be called again.
	Read(ctx context.Context) ([]kafka.Record, error)
	Next() int64 // the offset that the next Read starts from
	Lag() int64  // how many offsets lie between that and the end
	// Close ends fetching and frees the reader's memory.
	Close()
}

// group is the consumer group of all indexers.
const group = "trunkline-cdrindex"

// NewKafkaTopic returns the Topic of a Kafka cluster.
func NewKafkaTopic(c *kafka.Cluster) Topic { return kafkaTopic{c} }

type kafkaTopic struct{ cluster *kafka.Cluster }

func (t kafkaTopic) Work(ctx context.Context, work func(context.Context, int, func(int64)) error) error {
	return t.cluster.RunGroup(ctx, kafka.GroupConfig{Group: group, Topics: []string{event.TopicCDR}},
		func(ctx context.Context, assigned *kafka.Assignment) error {
			return work(ctx, assigned.Partition, assigned.Commit)
		})
}

func (t kafkaTopic) Partitions(ctx context.Context) (int, error) {
	return t.cluster.Partitions(ctx, event.TopicCDR)
}

func (t kafkaTopic) Offsets(ctx context.Context, partition int) (first, next int64, err error) {
	return t.cluster.Offsets(ctx, event.TopicCDR, partition)
}

func (t kafkaTopic) TopicID(ctx context.Context) (kafka.TopicID, error) {
	return t.cluster.TopicID(ctx, event.TopicCDR)
}

func (t kafkaTopic) CheckPosition(ctx context.Context, partition int, position kafka.LogPosition) error {
	return t.cluster.CheckPosition(ctx, event.TopicCDR, partition, position)
}

func (t kafkaTopic) Read(partition int, from kafka.LogPosition) Reader {
	return t.cluster.OpenReader(kafka.ReaderConfig{Topic: event.TopicCDR, Partition: partition, From: from})
}
