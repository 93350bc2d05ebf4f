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

	mu      sync.Mutex
	readErr error
}

func newFollower(ctx context.Context, cluster *kafka.Cluster) *follower {
	f := &follower{cluster: cluster}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx)) // continues after an interrupt of the run
	return f
}

// follow passes every new record of a topic to handle: in order within a partition, concurrently
// across partitions.
func (f *follower) follow(ctx context.Context, topic string, handle func(*kafka.Record)) error {
	partitions, err := f.cluster.Partitions(ctx, topic)
	if err != nil {
		return fmt.Errorf("following %s: %w", topic, err)
	}

	for partition := range partitions {
		_, next, err := f.cluster.Offsets(ctx, topic, partition)
		if err != nil {
			return fmt.Errorf("following %s: %w", topic, err)
		}
		f.running.Go(func() { f.read(topic, partition, next, handle) })
	}

	return nil
}

func (f *follower) read(topic string, partition int, from int64, handle func(*kafka.Record)) {
	reader := f.cluster.NewReader(topic, partition, from)
	defer reader.Close()

	for {
		records, err := reader.Read(f.ctx)
		if f.ctx.Err() != nil {
			return
		}

		if err != nil {
			f.mu.Lock()
			f.readErr = errors.Join(f.readErr, fmt.Errorf("following %s: %w", topic, err))
			f.mu.Unlock()
			return
		}

		for i := range records {
			handle(&records[i])
		}
	}
}

// err returns the error that ended the consumption of a partition, nil while all are consumed.
func (f *follower) err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readErr
}

func (f *follower) close() {
	f.cancel()
	f.running.Wait()
}

// sourceOffset returns the offset of a record's source, negative if the record has none.
func sourceOffset(record *kafka.Record) int64 {
	position, err := event.ParsePosition(string(record.Header(event.HeaderPosition)))
	if err != nil {
		return -1
	}
	return position.Offset
}
