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
type leaders struct {
	cluster *Cluster
	mu      sync.Mutex
	topics  map[string]*topicLeaders
}

type topicLeaders struct {
	leaders []string // host:port by partition
	at      time.Time
	asking  bool // a background refresh is on its way
}

const leadersMaxAge = 30 * time.Second

// topic gives what is known of a topic, asking first when nothing is.
func (l *leaders) topic(ctx context.Context, name string) (*topicLeaders, error) {
	l.mu.Lock()
	t := l.topics[name]
	refresh := t != nil && !t.asking && time.Since(t.at) > leadersMaxAge
	if refresh {
		t.asking = true
	}
	l.mu.Unlock()
	if refresh {
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
			defer cancel()
			if _, err := l.refresh(ctx, name); err != nil {
				l.mu.Lock()
				t.asking = false
				l.mu.Unlock()
			}
		}()
	}
	if t != nil {
		return t, nil
	}
	return l.refresh(ctx, name)
}

// leader is the address of the broker that leads a partition.
func (l *leaders) leader(ctx context.Context, name string, partition int) (string, error) {
	t, err := l.topic(ctx, name)
	if err != nil {
		return "", err
	}
	if partition < 0 || partition >= len(t.leaders) {
		l.forget(name)
		return "", kafkago.UnknownTopicOrPartition
	}
	if t.leaders[partition] == "" {
		l.forget(name)
		return "", kafkago.LeaderNotAvailable
	}
	return t.leaders[partition], nil
}

// forget makes the next question about the topic ask a broker.
func (l *leaders) forget(name string) {
	l.mu.Lock()
	delete(l.topics, name)
	l.mu.Unlock()
}

// refresh asks a broker about the topic.
func (l *leaders) refresh(ctx context.Context, name string) (*topicLeaders, error) {
	m, err := l.cluster.askMetadata(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	if len(m.topics) != 1 || m.topics[0].name != name {
		return nil, errMalformed
	}
	if err := m.topics[0].err; err != nil {
		l.forget(name)
		return nil, err
	}
	t := &topicLeaders{leaders: m.topics[0].leaders, at: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.topics == nil {
		l.topics = map[string]*topicLeaders{}
	}
	l.topics[name] = t
	return t, nil
}
