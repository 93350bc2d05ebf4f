package kafka_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
)

// patience limits each wait for a condition: only a test that fails waits so long.
const patience = 3 * time.Minute

// collector gathers what the members of groups read.
type collector struct {
	mu     sync.Mutex
	seen   map[string]int // value: times
	began  map[int]int    // by partition: number of starts of its work
	ended  map[int]int    // and of its ends
	change chan struct{}
}

func newCollector() *collector {
	return &collector{seen: map[string]int{}, began: map[int]int{}, ended: map[int]int{},
		change: make(chan struct{}, 1)}
}

// work reads a partition and commits what it has read.
func (k *collector) work(c *kafka.Cluster) func(context.Context, *kafka.Assignment) error {
	return func(ctx context.Context, l *kafka.Assignment) error {
		k.withLock(func() { k.began[l.Partition]++ })
		defer k.withLock(func() { k.ended[l.Partition]++ })

		next, ok := l.Committed()
		if !ok {
			next = 0
		}

		r := c.NewReader(l.Topic, l.Partition, next)
		defer r.Close()

		for {
			records, err := r.Read(ctx)
			if err != nil {
				return err
			}

			k.withLock(func() {
				for i := range records {
					k.seen[string(records[i].Value)]++
				}
			})

			l.Commit(r.Next())
		}
	}
}

func (k *collector) withLock(f func()) {
	k.mu.Lock()
	f()
	k.mu.Unlock()
	select {
	case k.change <- struct{}{}:
	default:
	}
}

// await waits until ok holds.
func (k *collector) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		k.mu.Lock()
		done := ok()
		k.mu.Unlock()

		if done {
			return
		}

		select {
		case <-k.change:
		case <-deadline:
			t.Fatalf("waited too long for %s", what)
		}
	}
}

// join runs a member of a group until the function it gives is called.
func join(t *testing.T, c *kafka.Cluster, work func(context.Context, *kafka.Assignment) error,
	topics ...string) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.RunGroup(ctx, kafka.GroupConfig{Group: "g", Topics: topics}, work) }()

	var once sync.Once
	leave = func() {
		once.Do(func() {
			cancel()

			select {
			case err := <-done:
				if err != nil {
					t.Errorf("the group ended with %v", err)
				}
			case <-time.After(patience):
				t.Error("the member did not leave")
			}
		})
	}

	t.Cleanup(leave)
	return leave
}

func groupResumes(t *testing.T, s service) {
	c := s.openWithTopic(t, 2)
	produce(t, c, append(numbered(0, 0, 50), numbered(1, 50, 50)...)...)
	first := newCollector()
	leave := join(t, c, first.work(c), "t")
	first.await(t, "the first hundred", func() bool { return len(first.seen) == 100 })
	leave()
	produce(t, c, numbered(1, 100, 50)...)
	second := newCollector()
	join(t, c, second.work(c), "t")
	second.await(t, "the rest", func() bool { return len(second.seen) == 50 })

	for value, times := range second.seen {
		if times != 1 || len(value) != 3 {
			t.Errorf("%s was read %d times", value, times)
		}
	}
}

func groupShares(t *testing.T, s service) {
	c := s.openWithTopic(t, 4)
	k := newCollector()
	leave := join(t, c, k.work(c), "t")
	k.await(t, "the first member's partitions", func() bool { return len(k.began) == 4 })
	produce(t, c, numbered(0, 0, 100)...)

	other := newCollector()
	join(t, c, other.work(c), "t")
	other.await(t, "the second member's share", func() bool { return len(other.began) == 2 })

	for partition := range 4 {
		produce(t, c, numbered(partition, 100+100*partition, 100)...)
	}

	both := func() int {
		k.mu.Lock()
		other.mu.Lock()
		defer k.mu.Unlock()
		defer other.mu.Unlock()

		union := map[string]bool{}
		for v := range k.seen {
			union[v] = true
		}

		for v := range other.seen {
			union[v] = true
		}

		return len(union)
	}

	until(t, "all of both", func() bool { return both() == 500 })
	leave()
	for partition := range 4 {
		produce(t, c, numbered(partition, 1000+100*partition, 100)...)
	}

	until(t, "all of the one that stayed", func() bool { return both() == 900 })
}

// until polls for what no channel tells.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long for %s", what)
		}
	}
}

func workRestarts(t *testing.T, s service) {
	c := s.openWithTopic(t, 2)
	produce(t, c, append(numbered(0, 0, 10), numbered(1, 10, 10)...)...)
	k := newCollector()

	work := k.work(c)
	var once sync.Once
	join(t, c, func(ctx context.Context, l *kafka.Assignment) error {
		failed := false
		if l.Partition == 1 {
			once.Do(func() { failed = true })
		}
		if failed {
			l.Commit(5)
			return errors.New("made up")
		}

		return work(ctx, l)
	}, "t")

	k.await(t, "the rest of both partitions", func() bool { return len(k.seen) == 15 })
}

func newPartitions(t *testing.T, s service) {
	c := s.open(t)
	ensure(t, c, topics.All(2)...)
	k := newCollector()
	join(t, c, k.work(c), event.TopicRaw)
	k.await(t, "two partitions", func() bool { return len(k.began) == 2 })

	if err := c.EnsurePartitions(t.Context(), event.TopicRaw, 5); err != nil {
		t.Fatal(err)
	}

	k.await(t, "five partitions", func() bool { return len(k.began) == 5 })
	// A consumer group creates no partitions: KeepTopics does.
	if n, err := c.Partitions(t.Context(), event.TopicEvents); n != 2 || err != nil {
		t.Errorf("%s has %d partitions, %v", event.TopicEvents, n, err)
	}

	following, stop := context.WithCancel(t.Context())
	defer stop()

	go c.KeepTopics(following, topics.All(2), true)
	until(t, "the topic that follows", func() bool {
		n, err := c.Partitions(t.Context(), event.TopicEvents)
		return n == 5 && err == nil
	})

	produce(t, c, kafka.Record{Topic: event.TopicRaw, Partition: 4, Value: []byte("in the new one")})
	k.await(t, "a record of a new partition", func() bool { return k.seen["in the new one"] == 1 })
}
