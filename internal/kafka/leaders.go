package kafka

import (
	"context"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// leaders caches the leaders of partitions. It queries a broker about a topic that is
// not cached, about one that a broker reported as out of date and, in the background,
// about one older than leadersMaxAge, so that new partitions get their share of keys.
//
// A broker that was paused may return outdated leaders. Each leadership has an epoch
// that only rises: a response with a lower epoch than the cached one is ignored, and
// requests carry the epoch, so that a broker that is no longer the leader rejects
// them.
type leaders struct {
	cluster *Cluster
	asked   lookups[string, *topicLeaders]
	mu      sync.Mutex
	topics  map[string]*topicLeaders
}

// topicLeaders is immutable, except for stale and asking, guarded by leaders.mu.
type topicLeaders struct {
	id         TopicID
	partitions []leadership
	at         time.Time
	stale      bool // query a broker before the next use
	asking     bool // a background refresh is in progress
}

// leadership is the leader of a partition.
type leadership struct {
	address string // host:port; "" if the partition has none
	epoch   int32
	at      time.Time // when a broker reported it
}

const (
	leadersMaxAge = 30 * time.Second
	// epochMemory is how long a lower epoch is rejected after a higher one. After
	// that, a lower epoch means that the topic was recreated.
	epochMemory = 30 * time.Second
)

// topic returns a topic from the cache, or queries a broker if it is not cached.
func (l *leaders) topic(ctx context.Context, name string) (*topicLeaders, error) {
	l.mu.Lock()
	t := l.topics[name]
	known := t != nil && !t.stale
	refresh := known && !t.asking && time.Since(t.at) > leadersMaxAge
	if refresh {
		t.asking = true
	}
	l.mu.Unlock()
	if refresh {
		go l.refreshLater(context.WithoutCancel(ctx), name, t)
	}
	if known {
		return t, nil
	}
	return l.asked.join(ctx, name)
}

// within returns a topic's leaders, at most maxAge old.
func (l *leaders) within(ctx context.Context, name string, maxAge time.Duration) (*topicLeaders, error) {
	l.mu.Lock()
	t := l.topics[name]
	known := t != nil && !t.stale && time.Since(t.at) <= maxAge
	l.mu.Unlock()
	if known {
		return t, nil
	}
	return l.refresh(ctx, name)
}

func (l *leaders) refreshLater(ctx context.Context, name string, t *topicLeaders) {
	if _, err := l.refresh(ctx, name); err != nil {
		l.mu.Lock()
		t.asking = false
		l.mu.Unlock()
	}
}

// leader returns the leader of a partition.
func (l *leaders) leader(ctx context.Context, name string, partition int) (leadership, error) {
	t, err := l.topic(ctx, name)
	if err != nil {
		return leadership{}, err
	}
	return l.leaderOf(t, partition)
}

// leaderOf returns the leader of a partition of t. If there is none, the next use of
// the topic queries a broker.
func (l *leaders) leaderOf(t *topicLeaders, partition int) (leadership, error) {
	leader, err := t.leader(partition)
	if err != nil {
		l.mu.Lock()
		t.stale = true
		l.mu.Unlock()
	}
	return leader, err
}

// epoch returns the newest known leader epoch of a partition, or UnknownEpoch.
func (l *leaders) epoch(name string, partition int) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[name]
	if t == nil || partition >= len(t.partitions) {
		return UnknownEpoch
	}
	return t.partitions[partition].epoch
}

func (t *topicLeaders) leader(partition int) (leadership, error) {
	if partition < 0 || partition >= len(t.partitions) {
		return leadership{}, kafkago.UnknownTopicOrPartition
	}
	if t.partitions[partition].address == "" {
		return leadership{}, kafkago.LeaderNotAvailable
	}
	return t.partitions[partition], nil
}

// forget makes the next use of the topic query a broker, unless a broker has reported
// another leader of the partition since failed was looked up: each partition and
// connection notices the same leader change at a different time, and one query is
// enough for all.
func (l *leaders) forget(name string, partition int, failed leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[name]
	if t == nil || partition >= len(t.partitions) {
		return
	}
	if now := t.partitions[partition]; now.address == failed.address && now.epoch == failed.epoch {
		t.stale = true
	}
}

// withLeader calls ask with the leader of a partition, and retries several times while
// the error may be temporary.
func (l *leaders) withLeader(ctx context.Context, name string, partition int, ask func(leadership) error) error {
	return severalTries(ctx, func() error {
		leader, err := l.leader(ctx, name, partition)
		if err != nil {
			return err
		}
		if err = ask(leader); err != nil && staleLeader(err) {
			l.forget(name, partition, leader)
		}
		return err
	})
}

// refresh queries a broker about the topic.
func (l *leaders) refresh(ctx context.Context, name string) (*topicLeaders, error) {
	return l.asked.get(ctx, name)
}

// ask queries a broker about topics and caches the responses.
func (l *leaders) ask(ctx context.Context, names []string) (map[string]answer[*topicLeaders], error) {
	m, err := l.cluster.askMetadata(ctx, names)
	if err != nil {
		return nil, err
	}
	answers := make(map[string]answer[*topicLeaders], len(m.topics))
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range m.topics {
		said := &m.topics[i]
		if said.err != nil {
			answers[said.name] = answer[*topicLeaders]{err: said.err}
			continue
		}
		t := &topicLeaders{id: said.id, partitions: said.leaders, at: time.Now()}
		if before := l.topics[said.name]; before != nil && before.id == t.id {
			t.partitions = newest(before.partitions, t.partitions, t.at)
		}
		if l.topics == nil {
			l.topics = map[string]*topicLeaders{}
		}
		l.topics[said.name] = t
		answers[said.name] = answer[*topicLeaders]{value: t}
	}
	return answers, nil
}

// newest merges a broker's response with the cached one: for each partition the higher
// epoch wins, unless the cached one has expired.
func newest(before, reported []leadership, now time.Time) []leadership {
	merged := append([]leadership(nil), reported...)
	for i := range merged {
		if i < len(before) && merged[i].epoch < before[i].epoch && now.Sub(before[i].at) < epochMemory {
			merged[i] = before[i]
		}
	}
	return merged
}
