package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// follower consumes topics from their ends at its start.
type follower struct {
	cluster *kafka.Cluster
	cancel  context.CancelFunc
	ctx     context.Context
	running sync.WaitGroup

	mu     sync.Mutex
	failed error
}

func newFollower(ctx context.Context, cluster *kafka.Cluster) *follower {
	f := &follower{cluster: cluster}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx)) // continues after an interrupt of the run
	return f
}

// follow passes every new record of a topic to see: in order within a partition, concurrently
// across partitions.
func (f *follower) follow(ctx context.Context, topic string, see func(*kafka.Record)) error {
	partitions, err := f.cluster.Partitions(ctx, topic)
	if err != nil {
		return fmt.Errorf("following %s: %w", topic, err)
	}
	for partition := range partitions {
		_, next, err := f.cluster.Offsets(ctx, topic, partition)
		if err != nil {
			return fmt.Errorf("following %s: %w", topic, err)
		}
		f.running.Go(func() { f.read(topic, partition, next, see) })
	}
	return nil
}

func (f *follower) read(topic string, partition int, from int64, see func(*kafka.Record)) {
	reader := f.cluster.NewReader(topic, partition, from)
	defer reader.Close()
	for {
		records, err := reader.Read(f.ctx)
		if f.ctx.Err() != nil {
			return
		}
		if err != nil {
			f.mu.Lock()
			f.failed = errors.Join(f.failed, fmt.Errorf("following %s: %w", topic, err))
			f.mu.Unlock()
			return
		}
		for i := range records {
			see(&records[i])
		}
	}
}

// err returns the error that ended the consumption of a partition, nil while all are consumed.
func (f *follower) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed
}

func (f *follower) close() {
	f.cancel()
	f.running.Wait()
}

// sourceOf returns the offset of a record's source, negative if the record has none.
func sourceOf(record *kafka.Record) int64 {
	position, err := event.ParsePosition(string(record.Header(event.HeaderPosition)))
	if err != nil {
		return -1
	}
	return position.Offset
}
