package deadletter

import (
	"context"
	"fmt"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// retryGroup returns the consumer group whose offsets record how far the letters of one original
// topic were sent back. Each topic has its own group, so that one can be sent without the other.
func retryGroup(topic string) string { return "trunkline-deadletter-" + topic }

// RetryAll sends back every open letter of the topics that no earlier RetryAll has sent, and
// returns their number. Processes that run it at once share the partitions as members of a group.
// progress is called with the number of each partition's letters, one call at a time.
func (s *Letters) RetryAll(ctx context.Context, topics []string,
	progress func(topic string, partition, n int)) (sent int, err error) {
	partitions, err := s.partitions(ctx)
	if err != nil {
		return 0, err
	}

	ends := make([]int64, partitions)
	for n := range ends {
		_, ends[n], err = s.deps.LogReader.Offsets(ctx, event.TopicDead, n)
		if err != nil {
			return 0, err
		}
	}

	for _, topic := range topics {
		n, err := s.retryTopic(ctx, topic, ends, progress)
		sent += n
		if err != nil {
			return sent, fmt.Errorf("%d sent back, then: %w", sent, err)
		}
	}

	return sent, nil
}

// retryTopic sends the letters of one original topic before the offsets ends.
func (s *Letters) retryTopic(ctx context.Context, topic string, ends []int64,
	progress func(string, int, int)) (sent int, err error) {
	run := &topicRetry{Letters: s, topic: topic, endOffsets: ends, progress: progress, remaining: make(map[int]bool)}
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
	err = s.deps.LogReader.RunGroup(ctx, group, run.retryPartition)
	cause := context.Cause(ctx)
	if err == nil && cause != errAllSent {
		err = cause
	}

	return run.sentCount, err
}

// errAllSent is the cause that ends the group when no letters are left.
var errAllSent = fmt.Errorf("all dead letters are sent back")

// topicRetry sends the letters of one original topic.
type topicRetry struct {
	*Letters
	topic      string
	endOffsets []int64 // by partition of cc.dead, at the call of RetryAll
	progress   func(topic string, partition, n int)
	cancel     context.CancelCauseFunc // ends the group

	mu        sync.Mutex
	remaining map[int]bool // partitions with letters that are not sent
	sentCount int
}

// retryPartition sends one partition's letters and then waits until the group ends: the group
// would restart a function that returns.
func (t *topicRetry) retryPartition(ctx context.Context, assignment *kafka.Assignment) error {
	// A partition that was added since has no letters from before the call.
	if assignment.Partition < len(t.endOffsets) {
		if err := t.sendPartition(ctx, assignment); err != nil {
			if ctx.Err() == nil { // otherwise the partition was revoked
				t.cancel(err)
			}
			return err
		}
	}

	<-ctx.Done()
	return nil
}

// sendPartition sends one partition's letters from where the group has committed, and commits. After the last
// partition it ends the group.
func (t *topicRetry) sendPartition(ctx context.Context, assignment *kafka.Assignment) error {
	first, _, err := t.deps.LogReader.Offsets(ctx, event.TopicDead, assignment.Partition)
	if err != nil {
		return err
	}

	if next, ok := assignment.Committed(); ok {
		first = max(first, next)
	}

	end := t.endOffsets[assignment.Partition]
	sent := 0
	if first < end {
		sent, err = t.settlePartition(ctx, Retried, Filter{Topic: t.topic}, assignment.Partition, first, end)
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	// Also those before an error: they are sent.
	t.sentCount += sent
	if sent > 0 {
		t.progress(t.topic, assignment.Partition, sent)
	}
	if err != nil {
		return err
	}

	// Committed with the offset of the call's begin: letters that come meanwhile are for the next call.
	if first < end {
		assignment.Commit(end)
	}

	delete(t.remaining, assignment.Partition)
	if len(t.remaining) == 0 {
		t.cancel(errAllSent)
	}

	return nil
}
