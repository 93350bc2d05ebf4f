package kafka

import (
	"context"
	"errors"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"trunkline/internal/fault"
)

var errMalformed = errors.New("malformed response")

// TopicInfo describes an existing topic.
type TopicInfo struct {
	Name              string // base name
	Partitions        int
	ReplicationFactor int
}

// Topics lists the topics under our prefix, by name, fresh from a broker.
func (c *Cluster) Topics(ctx context.Context) ([]TopicInfo, error) {
	m, err := c.askMetadata(ctx, nil)
	if err != nil {
		return nil, away(err, "listing topics")
	}
	var infos []TopicInfo
	for _, t := range m.topics {
		base, ours := strings.CutPrefix(t.name, c.cfg.TopicPrefix)
		if !ours || t.internal || t.err != nil {
			continue
		}
		infos = append(infos, TopicInfo{base, len(t.leaders), t.replicas})
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	return infos, nil
}

// Partitions returns the number of partitions a topic has, fresh from a broker.
func (c *Cluster) Partitions(ctx context.Context, topic string) (int, error) {
	t, err := c.leaders.refresh(ctx, c.topic(topic))
	if errors.Is(err, kafkago.UnknownTopicOrPartition) {
		return 0, fault.NotFound("no topic %q", topic)
	}
	if err != nil {
		return 0, away(err, "counting partitions")
	}
	return len(t.partitions), nil
}

// metadata is a broker's answer about brokers and topics.
type metadata struct {
	brokers map[int32]string // host:port
	topics  []topicMetadata
}

type topicMetadata struct {
	name     string
	id       TopicID
	err      error
	internal bool
	replicas int // of a partition
	leaders  []leadership
}

// askMetadata asks about topics, about all when topics is nil. It never
// creates one.
func (c *Cluster) askMetadata(ctx context.Context, topics []string) (*metadata, error) {
	r, err := c.askFlexible(ctx, "", protocol.Metadata, metadataVersion, func(b []byte) []byte {
		if topics == nil {
			b = append(b, 0) // null: all
		} else {
			b = appendCompactArray(b, len(topics))
		}
		for _, t := range topics {
			b = append(b, make([]byte, len(TopicID{}))...) // asked by name
			b = appendCompactString(b, t)
			b = appendNoTags(b)
		}
		b = append(b, 0)    // no automatic creation
		return append(b, 0) // no list of operations that are allowed
	})
	if err != nil {
		return nil, err
	}
	return readMetadata(r)
}

func readMetadata(r *wireReader) (*metadata, error) {
	r.int32() // throttle
	now := time.Now()
	m := &metadata{brokers: map[int32]string{}}
	for range r.compactArray(11) {
		id, host, port := r.int32(), r.compactString(), r.int32()
		r.compactBytes() // rack
		r.tags(nil)
		m.brokers[id] = net.JoinHostPort(host, strconv.Itoa(int(port)))
	}
	r.compactBytes() // cluster id
	r.int32()        // controller
	for range r.compactArray(26) {
		t := topicMetadata{err: code(r.int16()), name: r.compactString(), id: r.topicID(), internal: r.int8() != 0}
		partitions := r.compactArray(18)
		t.leaders = make([]leadership, partitions)
		for range partitions {
			r.int16() // error: repeated by the broker that is asked
			index, leader, epoch := int(r.int32()), r.int32(), r.int32()
			replicas := skipInt32s(r)
			skipInt32s(r) // in sync
			skipInt32s(r) // offline
			r.tags(nil)
			if index < 0 || index >= partitions {
				return nil, errMalformed
			}
			t.leaders[index] = leadership{m.brokers[leader], epoch, now}
			t.replicas = replicas
		}
		r.int32() // operations that are allowed
		r.tags(nil)
		m.topics = append(m.topics, t)
	}
	if r.bad {
		return nil, errMalformed
	}
	return m, nil
}

// skipInt32s skips an array of ids and returns its length.
func skipInt32s(r *wireReader) int {
	n := r.compactArray(4)
	r.take(4 * n)
	return n
}
