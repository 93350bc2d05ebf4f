package deadletter

import (
	"context"
	"fmt"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// retryGroup returns the consumer group whose offsets record how far the letters of one original
// topic were sent back. Each topic has its own group, so that --topic does not skip the letters
// of others.
func retryGroup(topic string) string { return "trunkline-deadletter-" + topic }

// all sends every letter that no earlier retry of all has sent. Concurrent commands share the
// partitions as members of a group.
func (r *retry) all(ctx context.Context) error {
	partitions, err := deadPartitions(ctx, r.cluster)
	if err != nil {
		return err
	}
	ends := make([]int64, partitions)
	for n := range ends {
		if _, ends[n], err = r.cluster.Offsets(ctx, event.TopicDead, n); err != nil {
			return err
		}
	}
	sent := 0
	for _, topic := range r.topics {
		n, err := r.topic(ctx, topic, ends)
		sent += n
		if err != nil {
			return fmt.Errorf("%d sent back, then: %w", sent, err)
		}
	}
	printSent(r.p, sent)
	return nil
}

// topic sends the letters of one original topic before the offsets ends.
func (r *retry) topic(ctx context.Context, topic string, ends []int64) (sent int, err error) {
	run := &topicRetry{retry: r, name: topic, ends: ends, left: make(map[int]bool)}
	for n, end := range ends {
		if end > 0 {
			run.left[n] = true
		}
	}
	if len(run.left) == 0 {
		return 0, nil
	}
	ctx, run.finish = context.WithCancelCause(ctx)
	defer run.finish(nil)
	group := kafka.GroupConfig{Group: retryGroup(topic), Topics: []string{event.TopicDead}}
	err = r.cluster.RunGroup(ctx, group, run.retryPartition)
	if cause := context.Cause(ctx); err == nil && cause != errDone {
		err = cause
	}
	return run.sent, err
}

// errDone ends a group that has no letters left.
var errDone = fmt.Errorf("all dead letters are sent back")

// topicRetry is one run over the letters of one original topic.
type topicRetry struct {
	*retry
	name   string
	ends   []int64
	finish context.CancelCauseFunc

	mu   sync.Mutex
	left map[int]bool // partitions that are not done
	sent int
}

// retryPartition sends one partition's letters and then waits until the group ends: the group
// would restart a function that returns.
func (t *topicRetry) retryPartition(ctx context.Context, lane *kafka.Assignment) error {
	if lane.Partition < len(t.ends) {
		if err := t.send(ctx, lane); err != nil {
			if ctx.Err() == nil { // otherwise the partition was revoked
				t.finish(err)
			}
			return err
		}
		t.done(lane.Partition)
	}
	<-ctx.Done()
	return nil
}

func (t *topicRetry) send(ctx context.Context, lane *kafka.Assignment) error {
	first, _, err := t.cluster.Offsets(ctx, event.TopicDead, lane.Partition)
	if err != nil {
		return err
	}
	if next, ok := lane.Committed(); ok {
		first = max(first, next)
	}
	return scan(ctx, t.cluster, lane.Partition, first, t.ends[lane.Partition], func(records []kafka.Record) error {
		var back []kafka.Record
		for i := range records {
			if l := letterOf(&records[i]); l.topic() == t.name {
				back = append(back, l.original())
			}
		}
		if err := t.producer.Produce(ctx, back...); err != nil {
			return fmt.Errorf("sending dead letters back: %w", err)
		}
		lane.Commit(records[len(records)-1].Offset + 1)
		t.count(lane.Partition, len(back))
		return nil
	})
}

func (t *topicRetry) count(partition, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent += n
	if n > 0 {
		fmt.Fprintf(t.p.Err, "%s: %d sent back from partition %d\n", t.name, n, partition)
	}
}

func (t *topicRetry) done(partition int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.left, partition)
	if len(t.left) == 0 {
		t.finish(errDone)
	}
}
