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
	batcher *lookupBatcher[string, *topicLeaders]
	mu      sync.Mutex
	topics  map[string]*topicLeaders
}

// topicLeaders is immutable, except for stale and refreshing, guarded by leaders.mu.
type topicLeaders struct {
	id         TopicID
	partitions []leadership
	fetchedAt  time.Time
	stale      bool // query a broker before the next use
	refreshing bool // a background refresh is in progress
}

// leadership is the leader of a partition.
type leadership struct {
	address    string // host:port; "" if the partition has none
	epoch      int32
	reportedAt time.Time // when a broker reported it
}

const (
	leadersMaxAge = 30 * time.Second
	// lowerEpochTimeout is the time for which a lower epoch is rejected after a higher one. After
	// that, a lower epoch means that the topic was recreated.
	lowerEpochTimeout = 30 * time.Second
)

// topic returns a topic from the cache, or queries a broker if it is not cached.
func (l *leaders) topic(ctx context.Context, name string) (*topicLeaders, error) {
	l.mu.Lock()
	t := l.topics[name]
	cached := t != nil && !t.stale
	refresh := cached && !t.refreshing && time.Since(t.fetchedAt) > leadersMaxAge
	if refresh {
		t.refreshing = true
	}
	l.mu.Unlock()

	if refresh {
		// The caller is served from the cache and may end before the answer, which is for all.
		go l.refreshInBackground(context.WithoutCancel(ctx), name, t)
	}
	if cached {
		return t, nil
	}

	return l.batcher.getOrJoin(ctx, name)
}

// freshTopic returns a topic's leaders, at most maxAge old.
func (l *leaders) freshTopic(ctx context.Context, name string, maxAge time.Duration) (*topicLeaders, error) {
	l.mu.Lock()
	t := l.topics[name]
	cached := t != nil && !t.stale && time.Since(t.fetchedAt) <= maxAge
	l.mu.Unlock()
	if cached {
		return t, nil
	}
	return l.refresh(ctx, name)
}

func (l *leaders) refreshInBackground(ctx context.Context, name string, t *topicLeaders) {
	_, err := l.refresh(ctx, name)
	if err != nil {
		l.mu.Lock()
		t.refreshing = false
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

// markStale makes the next use of the topic query a broker, unless a broker has reported
// another leader of the partition since failed was looked up: each partition and
// connection notices the same leader change at a different time, and one query is
// enough for all.
func (l *leaders) markStale(name string, partition int, failed leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()

	t := l.topics[name]
	if t == nil || partition >= len(t.partitions) {
		return
	}

	current := t.partitions[partition]
	if current.address == failed.address && current.epoch == failed.epoch {
		t.stale = true
	}
}

// withLeader calls send with the leader of a partition, and retries several times while
// the error may be temporary.
func (l *leaders) withLeader(ctx context.Context, name string, partition int, send func(leadership) error) error {
	return withRetries(ctx, func() error {
		leader, err := l.leader(ctx, name, partition)
		if err != nil {
			return err
		}

		err = send(leader)
		if err != nil && staleLeader(err) {
			l.markStale(name, partition, leader)
		}

		return err
	})
}

// refresh queries a broker about the topic.
func (l *leaders) refresh(ctx context.Context, name string) (*topicLeaders, error) {
	return l.batcher.get(ctx, name)
}

// requestTopics queries a broker about topics and caches the responses.
func (l *leaders) requestTopics(ctx context.Context, names []string) (map[string]lookupResult[*topicLeaders], error) {
	m, err := l.cluster.requestMetadata(ctx, names)
	if err != nil {
		return nil, err
	}

	results := make(map[string]lookupResult[*topicLeaders], len(m.topics))
	l.mu.Lock()
	defer l.mu.Unlock()

	for i := range m.topics {
		reported := &m.topics[i]
		if reported.err != nil {
			results[reported.name] = lookupResult[*topicLeaders]{err: reported.err}
			continue
		}

		t := &topicLeaders{id: reported.id, partitions: reported.leaders, fetchedAt: time.Now()}
		cached := l.topics[reported.name]
		// The epochs of a topic that was created again begin anew and cannot be compared.
		if cached != nil && cached.id == t.id {
			t.partitions = mergeByEpoch(cached.partitions, t.partitions, t.fetchedAt)
		}
		if l.topics == nil {
			l.topics = map[string]*topicLeaders{}
		}

		l.topics[reported.name] = t
		results[reported.name] = lookupResult[*topicLeaders]{value: t}
	}

	return results, nil
}

// mergeByEpoch merges a broker's response with the cached one: for each partition the higher
// epoch wins, unless the cached one has expired.
func mergeByEpoch(cached, reported []leadership, now time.Time) []leadership {
	merged := append([]leadership(nil), reported...)
	for i := range merged {
		if i < len(cached) && merged[i].epoch < cached[i].epoch && now.Sub(cached[i].reportedAt) < lowerEpochTimeout {
			merged[i] = cached[i]
		}
	}
	return merged
}
