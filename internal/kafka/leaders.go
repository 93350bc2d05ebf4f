package kafka

import (
	"context"
	"sync"
	"time"

	kafkago "github.com/segmentio/kafka-go"
)

// leaders knows who leads which partition. It asks when it does not know, when
// a broker said that it was wrong, and in the background when what it knows is
// old, so that new partitions get their share of keys.
//
// A broker that was frozen and goes on believes for a while that it leads what
// it led before, and says so. Each leadership has an epoch that only rises:
// one below the epoch known is not believed, and requests carry the epoch, so
// that such a broker refuses them.
type leaders struct {
	cluster *Cluster
	asked   lookups[string, *topicLeaders]
	mu      sync.Mutex
	topics  map[string]*topicLeaders
}

// topicLeaders is never changed but for the two marks, which leaders.mu guards.
type topicLeaders struct {
	id         TopicID
	partitions []leadership
	at         time.Time
	stale      bool // to be asked for again before it is used
	asking     bool // a background refresh is on its way
}

// leadership is who leads a partition.
type leadership struct {
	address string // host:port; "" while nobody does
	epoch   int32
	at      time.Time // when a broker said so
}

const (
	leadersMaxAge = 30 * time.Second
	// epochMemory is how long a higher epoch is held against a lower one.
	// After that, the topic was deleted and made again.
	epochMemory = 30 * time.Second
)

// topic gives what is known of a topic, asking first when nothing is.
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
	return l.refresh(ctx, name)
}

// within gives what was known of a topic at most maxAge ago.
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

// leader is who leads a partition.
func (l *leaders) leader(ctx context.Context, name string, partition int) (leadership, error) {
	t, err := l.topic(ctx, name)
	if err != nil {
		return leadership{}, err
	}
	leader, err := t.leader(partition)
	if err != nil {
		l.forget(name)
	}
	return leader, err
}

// epoch is the newest leader epoch known of a partition, UnknownEpoch when none is.
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

// forget makes the next question about the topic ask a broker.
func (l *leaders) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t := l.topics[name]; t != nil {
		t.stale = true
	}
}

// refresh asks a broker about the topic.
func (l *leaders) refresh(ctx context.Context, name string) (*topicLeaders, error) {
	return l.asked.get(ctx, name)
}

// ask asks a broker about topics and remembers the answers.
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

// newest takes what a broker says, except where it is behind what another said
// before.
func newest(before, said []leadership, now time.Time) []leadership {
	merged := append([]leadership(nil), said...)
	for i := range merged {
		if i < len(before) && merged[i].epoch < before[i].epoch && now.Sub(before[i].at) < epochMemory {
			merged[i] = before[i]
		}
	}
	return merged
}
