package kafka

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// Lane is one partition that this process works on at present.
type Lane struct {
	Topic     string // base name
	Partition int

	mu      sync.Mutex
	next    int64 // to read next, by the last commit; -1: nothing was ever committed
	moved   bool  // next was set in this generation
	flushed int64 // what the broker has of next
}

// Committed is the next offset to read, where the group has one: what Commit
// was last given, or what the broker knew when the lane began.
func (l *Lane) Committed() (next int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next, l.next >= 0
}

// Commit says that everything below next is done. It reaches the broker within
// a second, and when the lane ends. A call with less than the one before is
// ignored.
func (l *Lane) Commit(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.moved || next > l.next {
		l.next, l.moved = next, true
	}
}

// Rewind commits an offset below the one committed before: the log was cut, and
// what was done from next on is no longer in it.
func (l *Lane) Rewind(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next, l.moved = next, true
}

// unflushed is what the broker does not have yet.
func (l *Lane) unflushed() (next int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next, l.moved && l.next != l.flushed
}

func (l *Lane) setFlushed(next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushed = next
}

// shift is one generation of a group: the lanes this process has for its time.
type shift struct {
	*group
	gen   *kafkago.Generation
	dealt map[string]int // partitions by topic, when we are to watch for more
	lanes []*Lane
}

func newShift(g *group, gen *kafkago.Generation) *shift {
	s := &shift{group: g, gen: gen, dealt: g.takeDealt()}
	for topic, assigned := range gen.Assignments {
		base := strings.TrimPrefix(topic, g.cluster.cfg.TopicPrefix)
		for _, a := range assigned {
			next := max(a.Offset, -1) // below that it means "from the start"
			s.lanes = append(s.lanes, &Lane{Topic: base, Partition: a.ID, next: next, flushed: next})
		}
	}
	return s
}

// run works the lanes until the generation ends, which it does when the group
// rebalances, when the coordinator is lost, when the process stops, and when
// run returns: it does so when there are new partitions to deal out.
func (s *shift) run(outer, ended context.Context) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(outer))
	defer cancel()
	defer context.AfterFunc(ended, cancel)()

	var working sync.WaitGroup
	for _, l := range s.lanes {
		working.Go(func() { s.tend(ctx, l) })
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
			if s.changed(ctx) {
				cancel()
			}
		case <-ctx.Done():
		}
	}
	<-done
	s.flush()
	for _, l := range s.lanes {
		s.cluster.metrics.lag.DeleteLabelValues(l.Topic, strconv.Itoa(l.Partition), s.cfg.Group)
	}
}

// tend runs the work of one lane, again when it fails.
func (s *shift) tend(ctx context.Context, l *Lane) {
	wait := backoff{first: 100 * time.Millisecond, most: 10 * time.Second}
	for {
		began := time.Now()
		err := s.work(ctx, l)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait.reset()
		}
		s.cluster.metrics.laneRestarts.WithLabelValues(s.cfg.Group).Inc()
		s.log.Error("work on a partition ended, starting it again", "topic", l.Topic, "partition", l.Partition, "err", err)
		if !wait.sleep(ctx) {
			return
		}
	}
}

// flush tells the broker what was committed since it was last told. What
// fails is tried again with the next flush; another generation's coordinator
// refuses it.
func (s *shift) flush() {
	offsets := map[string]map[int]int64{}
	for _, l := range s.lanes {
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
		s.log.Warn("could not commit offsets", "err", err)
		return
	}
	s.cluster.metrics.commits.WithLabelValues(s.cfg.Group).Inc()
	for _, l := range s.lanes {
		if next, ok := offsets[s.cluster.topic(l.Topic)][l.Partition]; ok {
			l.setFlushed(next)
		}
	}
}

// changed says whether topics have other partitions than were dealt out. Only
// the member that dealt them watches: when it joins again, all do.
func (s *shift) changed(ctx context.Context) bool {
	if s.dealt == nil {
		return false
	}
	for _, topic := range s.cfg.Topics {
		n, err := s.cluster.Partitions(ctx, topic)
		if err == nil && n != s.dealt[s.cluster.topic(topic)] {
			s.log.Info("a topic has other partitions than before", "topic", topic, "partitions", n)
			return true
		}
	}
	return false
}

// reportLag sets the lag of each lane, whether or not its work gets on.
func (s *shift) reportLag(ctx context.Context) {
	for _, l := range s.lanes {
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
