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

// Assignment is one partition that this process works on at present.
type Assignment struct {
	Topic     string // base name
	Partition int

	mu      sync.Mutex
	next    int64 // to read next, by the last commit; -1: nothing was ever committed
	moved   bool  // next was set in this generation
	flushed int64 // what the broker has of next
}

// Committed returns the next offset to read, where the group has one: what
// Commit was last given, or what the broker knew when the assignment began.
func (l *Assignment) Committed() (next int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next, l.next >= 0
}

// Commit marks every offset below next as processed. It reaches the broker
// within a second, and when the assignment ends. A call with less than the one
// before is ignored.
func (l *Assignment) Commit(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.moved || next > l.next {
		l.next, l.moved = next, true
	}
}

// Rewind commits an offset below the one committed before: the log was cut, and
// what was done from next on is no longer in it.
func (l *Assignment) Rewind(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.moved = next, true
}

// unflushed returns the offsets that the broker does not have yet.
func (l *Assignment) unflushed() (next int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next, l.moved && l.next != l.flushed
}

func (l *Assignment) setFlushed(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushed = next
}

// generation is one generation of a group, with the partitions that this
// process has in it.
type generation struct {
	*group
	gen         *kafkago.Generation
	assigned    map[string]int // partitions by topic, when we are to watch for more
	assignments []*Assignment
}

func newGeneration(g *group, gen *kafkago.Generation) *generation {
	s := &generation{group: g, gen: gen, assigned: g.takeAssigned()}
	for topic, assigned := range gen.Assignments {
		base := strings.TrimPrefix(topic, g.cluster.cfg.TopicPrefix)
		for _, a := range assigned {
			next := max(a.Offset, -1) // below that it means "from the start"
			s.assignments = append(s.assignments, &Assignment{Topic: base, Partition: a.ID, next: next, flushed: next})
		}
	}
	return s
}

// run runs the work on the partitions until the generation ends, which it does when the group
// rebalances, when the coordinator is lost, when the process stops, and when
// run returns: it does so when there are new partitions to assign.
func (s *generation) run(outer, ended context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(outer))
	defer cancel()
	defer context.AfterFunc(ended, cancel)()

	var working sync.WaitGroup
	for _, l := range s.assignments {
		working.Go(func() { s.runWork(ctx, l) })
	}
	done := make(chan struct{})
	go func() {
		working.Wait()
		close(done)
	}()
	flush, lag, watch := time.NewTicker(flushEvery), time.NewTicker(lagEvery), time.NewTicker(watchPartitions)
	defer flush.Stop()
	defer lag.Stop()
	defer watch.Stop()
	for ctx.Err() == nil {
		select {
		case <-flush.C:
			s.flush()
		case <-lag.C:
			s.reportLag(ctx)
		case <-watch.C:
			if s.partitionsChanged(ctx) {
				cancel()
			}
		case <-ctx.Done():
		}
	}
	<-done
	s.flush()
	for _, l := range s.assignments {
		s.cluster.metrics.lag.DeleteLabelValues(l.Topic, strconv.Itoa(l.Partition), s.cfg.Group)
	}
}

// runWork runs the work on one partition, again when it fails.
func (s *generation) runWork(ctx context.Context, l *Assignment) {
	wait := retry.Backoff{First: 100 * time.Millisecond, Max: 10 * time.Second}
	for {
		began := time.Now()
		err := s.work(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait.Reset()
		}
		s.cluster.metrics.workRestarts.WithLabelValues(s.cfg.Group).Inc()
		s.log.Error("partition worker failed, restarting it", "topic", l.Topic, "partition", l.Partition, "error", err)
		if !wait.Wait(ctx) {
			return
		}
	}
}

// flush commits to the broker the offsets marked since the last flush. A failed
// commit is tried again with the next flush; another generation's coordinator
// refuses it.
func (s *generation) flush() {
	offsets := map[string]map[int]int64{}
	for _, l := range s.assignments {
		if next, ok := l.unflushed(); ok {
			topic := s.cluster.topic(l.Topic)
			if offsets[topic] == nil {
				offsets[topic] = map[int]int64{}
			}
			offsets[topic][l.Partition] = next
		}
	}
	if len(offsets) == 0 {
		return
	}
	if err := s.gen.CommitOffsets(offsets); err != nil {
		s.cluster.metrics.failed("commit", reason(err))
		s.log.Warn("offset commit failed", "error", err)
		return
	}
	s.cluster.metrics.commits.WithLabelValues(s.cfg.Group).Inc()
	for _, l := range s.assignments {
		if next, ok := offsets[s.cluster.topic(l.Topic)][l.Partition]; ok {
			l.setFlushed(next)
		}
	}
}

// partitionsChanged reports whether topics have other partitions than were
// assigned. Only the member that assigned them checks: when it joins again, all
// do.
func (s *generation) partitionsChanged(ctx context.Context) bool {
	if s.assigned == nil {
		return false
	}
	for _, topic := range s.cfg.Topics {
		n, err := s.cluster.Partitions(ctx, topic)
		if err == nil && n != s.assigned[s.cluster.topic(topic)] {
			s.log.Info("topic partition count changed", "topic", topic, "partitions", n)
			return true
		}
	}
	return false
}

// reportLag sets the lag of each partition, whether or not its work advances.
func (s *generation) reportLag(ctx context.Context) {
	for _, l := range s.assignments {
		first, next, err := s.cluster.Offsets(ctx, l.Topic, l.Partition)
		if err != nil {
			return // counted where it happened; the next tick asks again
		}
		from := first
		if committed, ok := l.Committed(); ok {
			from = max(committed, first)
		}
		s.cluster.metrics.lag.WithLabelValues(l.Topic, strconv.Itoa(l.Partition), s.cfg.Group).Set(float64(max(next-from, 0)))
	}
}
