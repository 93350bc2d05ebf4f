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

// retryAll sends every letter that no earlier retry of all has sent. Concurrent commands share the
// partitions as members of a group.
func (r *retry) retryAll(ctx context.Context) error {
	partitions, err := deadPartitions(ctx, r.cluster)
	if err != nil {
		return err
	}
	ends := make([]int64, partitions)
	for n := range ends {
		_, ends[n], err = r.cluster.Offsets(ctx, event.TopicDead, n)
		if err != nil {
			return err
		}
	}
	sent := 0
	for _, topic := range r.topics {
		n, err := r.retryTopic(ctx, topic, ends)
		sent += n
		if err != nil {
			return fmt.Errorf("%d sent back, then: %w", sent, err)
		}
	}
	printSent(r.p, sent)
	return nil
}

// retryTopic sends the letters of one original topic before the offsets ends.
func (r *retry) retryTopic(ctx context.Context, topic string, ends []int64) (sent int, err error) {
	run := &topicRetry{retry: r, topic: topic, ends: ends, remaining: make(map[int]bool)}
	for n, end := range ends {
		if end > 0 {
			run.remaining[n] = true
		}
	}
	if len(run.remaining) == 0 {
		return 0, nil
	}
	ctx, run.cancel = context.WithCancelCause(ctx)
	defer run.cancel(nil)
	group := kafka.GroupConfig{Group: retryGroup(topic), Topics: []string{event.TopicDead}}
	err = r.cluster.RunGroup(ctx, group, run.retryPartition)
	cause := context.Cause(ctx)
	if err == nil && cause != errAllSent {
		err = cause
	}
	return run.sent, err
}

// errAllSent is the cause that ends the group when no letters are left.
var errAllSent = fmt.Errorf("all dead letters are sent back")

// topicRetry sends the letters of one original topic.
type topicRetry struct {
	*retry
	topic  string
	ends   []int64
	cancel context.CancelCauseFunc

	mu        sync.Mutex
	remaining map[int]bool // partitions with letters that are not sent
	sent      int
}

// retryPartition sends one partition's letters and then waits until the group ends: the group
// would restart a function that returns.
func (t *topicRetry) retryPartition(ctx context.Context, assignment *kafka.Assignment) error {
	if assignment.Partition < len(t.ends) {
		if err := t.send(ctx, assignment); err != nil {
			if ctx.Err() == nil { // otherwise the partition was revoked
				t.cancel(err)
			}
			return err
		}
		t.finishPartition(assignment.Partition)
	}
	<-ctx.Done()
	return nil
}

func (t *topicRetry) send(ctx context.Context, assignment *kafka.Assignment) error {
	first, _, err := t.cluster.Offsets(ctx, event.TopicDead, assignment.Partition)
	if err != nil {
		return err
	}
	if next, ok := assignment.Committed(); ok {
		first = max(first, next)
	}
	return scan(ctx, t.cluster, assignment.Partition, first, t.ends[assignment.Partition], func(records []kafka.Record) error {
		var originals []kafka.Record
		for i := range records {
			l := newLetter(&records[i])
			if l.topic() == t.topic {
				originals = append(originals, l.originalRecord())
			}
		}
		if err := t.retry.send(ctx, originals); err != nil {
			return err
		}
		assignment.Commit(records[len(records)-1].Offset + 1)
		t.addSent(assignment.Partition, len(originals))
		return nil
	})
}

func (t *topicRetry) addSent(partition, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent += n
	if n > 0 {
		fmt.Fprintf(t.p.Err, "%s: %d sent back from partition %d\n", t.topic, n, partition)
	}
}

func (t *topicRetry) finishPartition(partition int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.remaining, partition)
	if len(t.remaining) == 0 {
		t.cancel(errAllSent)
	}
}
