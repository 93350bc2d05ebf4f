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
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/fault"
	"trunkline/internal/kafka/wire"
)

// TopicInfo describes an existing topic.
type TopicInfo struct {
	Name              string // base name
	Partitions        int
	ReplicationFactor int
}

// Topics lists the topics with our prefix, ordered by name. It is not cached.
func (c *Cluster) Topics(ctx context.Context) ([]TopicInfo, error) {
	m, err := c.requestMetadata(ctx, nil)
	if err != nil {
		return nil, asFault(err, "listing topics")
	}

	var infos []TopicInfo
	for _, t := range m.topics {
		base, hasPrefix := strings.CutPrefix(t.name, c.cfg.TopicPrefix)
		if !hasPrefix || t.internal || t.err != nil {
			continue
		}
		infos = append(infos, TopicInfo{base, len(t.leaders), t.replicas})
	}

	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	return infos, nil
}

// Partitions returns the number of partitions of a topic. It is not cached.
func (c *Cluster) Partitions(ctx context.Context, topic string) (int, error) {
	t, err := c.leaders.refresh(ctx, c.withPrefix(topic))
	return countPartitions(topic, t, err)
}

// KnownPartitions is Partitions from the cache of leaders, up to leadersMaxAge and one answer
// of a broker late. It waits for a broker only where nothing of the process uses the topic, or
// a leader has failed.
func (c *Cluster) KnownPartitions(ctx context.Context, topic string) (int, error) {
	t, err := c.leaders.topic(ctx, c.withPrefix(topic))
	return countPartitions(topic, t, err)
}

// countPartitions returns the number of partitions that a lookup of a topic found.
func countPartitions(topic string, t *topicLeaders, err error) (int, error) {
	if errors.Is(err, kafkago.UnknownTopicOrPartition) {
		return 0, fault.NotFound("no topic %q", topic)
	}
	if err != nil {
		return 0, asFault(err, "counting partitions")
	}
	return len(t.partitions), nil
}

// metadata is a broker's response about brokers and topics.
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

// requestMetadata queries topics, or all topics if topics is nil. It never creates one.
func (c *Cluster) requestMetadata(ctx context.Context, topics []string) (*metadata, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Version = metadataVersion
	if topics != nil {
		req.Topics = make([]kmsg.MetadataRequestTopic, len(topics))
	}

	for i := range topics {
		req.Topics[i].Topic = &topics[i]
	}

	res, err := c.request(ctx, "", req)
	if err != nil {
		return nil, err
	}

	return readMetadata(res.(*kmsg.MetadataResponse), time.Now())
}

func readMetadata(res *kmsg.MetadataResponse, now time.Time) (*metadata, error) {
	m := &metadata{brokers: map[int32]string{}}
	for _, b := range res.Brokers {
		m.brokers[b.NodeID] = net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
	}

	for _, from := range res.Topics {
		t := topicMetadata{err: errorFromCode(from.ErrorCode), id: from.TopicID, internal: from.IsInternal,
			leaders: make([]leadership, len(from.Partitions))}
		if from.Topic != nil {
			t.name = *from.Topic
		}

		for _, p := range from.Partitions { // the leader reports their errors again
			if p.Partition < 0 || int(p.Partition) >= len(t.leaders) {
				return nil, wire.ErrMalformed
			}
			t.leaders[p.Partition] = leadership{m.brokers[p.Leader], p.LeaderEpoch, now}
			t.replicas = len(p.Replicas)
		}

		m.topics = append(m.topics, t)
	}

	return m, nil
}
