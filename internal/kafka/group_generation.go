package kafka

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/internal/retry"
)

// Assignment is a partition assigned to this process.
type Assignment struct {
	Topic     string // base name
	Partition int

	mu            sync.Mutex
	next          int64 // next offset to read, by the last commit; -1: no commit yet
	updated       bool  // next was set in this generation
	flushedOffset int64 // value of next stored at the broker
}

// Committed returns the next offset to read, if the group has one: the last argument
// of Commit, or the committed offset at the start of the assignment.
func (a *Assignment) Committed() (next int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next, a.next >= 0
}

// Commit marks every offset below next as processed. It reaches the broker within a
// second, and at the end of the assignment. A lower value than in an earlier call is
// ignored; the first call may be below what the group had at the start of the assignment.
func (a *Assignment) Commit(next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.updated || next > a.next {
		a.next, a.updated = next, true
	}
}

// CommitLower commits an offset that may be below the last committed one, after the log was truncated
// or created again: the processed records from next on are no longer in it.
func (a *Assignment) CommitLower(next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.next, a.updated = next, true
}

// unflushed returns the committed offset if the broker does not have it yet.
func (a *Assignment) unflushed() (next int64, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next, a.updated && a.next != a.flushedOffset
}

func (a *Assignment) setFlushed(next int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.flushedOffset = next
}

// generation is one generation of a group, with the partitions assigned to this
// process.
type generation struct {
	*group
	gen             *kafkago.Generation
	partitionCounts map[string]int // partitions by topic, if this member has to watch for new ones
	assignments     []*Assignment
}

func newGeneration(g *group, gen *kafkago.Generation) *generation {
	s := &generation{group: g, gen: gen, partitionCounts: g.takePartitionCounts()}
	for topic, assigned := range gen.Assignments {
		base := strings.TrimPrefix(topic, g.cluster.cfg.TopicPrefix)
		for _, a := range assigned {
			next := max(a.Offset, -1) // values below -1 mean "from the start"
			s.assignments = append(s.assignments,
				&Assignment{Topic: base, Partition: a.ID, next: next, flushedOffset: next})
		}
	}
	return s
}

// run processes the partitions until the generation ends: when the group rebalances,
// the coordinator is lost, the process stops, or run returns because there are new
// partitions to assign.
func (s *generation) run(groupCtx, generationCtx context.Context) {
	// The work ends with the generation, not with groupCtx: then the last commit still counts, see RunGroup.
	ctx, cancel := context.WithCancel(context.WithoutCancel(groupCtx))
	defer cancel()
	defer context.AfterFunc(generationCtx, cancel)()

	var working sync.WaitGroup
	for _, a := range s.assignments {
		working.Go(func() { s.runWorker(ctx, a) })
	}

	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()

	flush, partitionCheck := time.NewTimer(s.until(flushInterval)), time.NewTimer(s.until(partitionCheckInterval))
	lag := time.NewTimer(s.until(lagInterval))
	defer flush.Stop()
	defer lag.Stop()
	defer partitionCheck.Stop()

	for ctx.Err() == nil {
		select {
		case <-flush.C:
			s.flush()
			flush.Reset(s.until(flushInterval))
		case <-lag.C:
			s.reportLag(ctx)
			lag.Reset(s.until(lagInterval))
		case <-partitionCheck.C:
			if s.partitionsChanged(ctx) {
				cancel()
			}
			partitionCheck.Reset(s.until(partitionCheckInterval))
		case <-ctx.Done():
		}
	}

	// Only after the work has ended are its last offsets known; kafka-go leaves the group when run has returned.
	<-done
	s.flush()
	for _, a := range s.assignments {
		s.cluster.metrics.lag.DeleteLabelValues(a.Topic, strconv.Itoa(a.Partition), s.cfg.Group)
	}
}

// runWorker runs the work on one partition, and restarts it when it fails.
func (s *generation) runWorker(ctx context.Context, a *Assignment) {
	backoff := retry.Backoff{First: 100 * time.Millisecond, Max: 10 * time.Second}
	for {
		startedAt := time.Now()
		err := s.work(ctx, a)
		if ctx.Err() != nil {
			return
		}
		if time.Since(startedAt) > time.Minute {
			backoff.Reset()
		}

		s.cluster.metrics.workRestarts.WithLabelValues(s.cfg.Group).Inc()
		s.log.Error("partition worker failed, restarting it", "topic", a.Topic, "partition", a.Partition, "error", err)
		if !backoff.Wait(ctx) {
			return
		}
	}
}

// flush sends the offsets committed since the last flush to the broker. A failed
// commit is retried with the next flush; the coordinator rejects it after the end of
// the generation.
func (s *generation) flush() {
	offsets := map[string]map[int]int64{}
	for _, a := range s.assignments {
		if next, ok := a.unflushed(); ok {
			topic := s.cluster.withPrefix(a.Topic)
			if offsets[topic] == nil {
				offsets[topic] = map[int]int64{}
			}
			offsets[topic][a.Partition] = next
		}
	}

	if len(offsets) == 0 {
		return
	}

	if err := s.gen.CommitOffsets(offsets); err != nil {
		s.cluster.metrics.countError("commit", reasonLabel(err))
		s.log.Warn("offset commit failed", "error", err)
		return
	}

	s.cluster.metrics.commits.WithLabelValues(s.cfg.Group).Inc()
	for _, a := range s.assignments {
		if next, ok := offsets[s.cluster.withPrefix(a.Topic)][a.Partition]; ok {
			a.setFlushed(next)
		}
	}
}

// partitionsChanged reports whether the number of partitions of any topic has changed
// since the assignment. Only the member that assigned them checks: when it joins
// again, all members do.
func (s *generation) partitionsChanged(ctx context.Context) bool {
	if s.partitionCounts == nil {
		return false
	}

	for _, topic := range s.cfg.Topics {
		name := s.cluster.withPrefix(topic)
		// The groups of a process share an answer.
		t, err := s.cluster.leaders.freshTopic(ctx, name, partitionCheckInterval*3/4)
		// An error is no reason to assign again: the next check asks once more.
		if err == nil && len(t.partitions) != s.partitionCounts[name] {
			s.log.Info("topic partition count changed", "topic", topic, "partitions", len(t.partitions))
			return true
		}
	}

	return false
}

// until returns the time until the groups of this process do what they do once in an interval. They
// do so at one time, so that they share requests, and wake an idle process once.
func (s *generation) until(interval time.Duration) time.Duration {
	return interval - time.Since(s.cluster.openedAt)%interval
}

// reportLag sets the lag of each partition, even if its work makes no progress.
func (s *generation) reportLag(ctx context.Context) {
	partitions := make([]topicPartition, len(s.assignments))
	for i, a := range s.assignments {
		partitions[i] = topicPartition{a.Topic, a.Partition}
	}

	lookups := s.cluster.startOffsets(ctx, partitions)

	for i, a := range s.assignments {
		first, next, err := lookups[i].await(ctx)
		if err != nil { // perhaps the leader has changed
			first, next, err = s.cluster.Offsets(ctx, a.Topic, a.Partition)
		}
		if err != nil {
			continue // already counted; retry at the next tick
		}

		from := first
		// Records deleted before they were processed are lost, and no lag.
		if committed, ok := a.Committed(); ok {
			from = max(committed, first)
		}

		s.cluster.metrics.lag.WithLabelValues(a.Topic, strconv.Itoa(a.Partition),
			s.cfg.Group).Set(float64(max(next-from, 0)))
	}
}
