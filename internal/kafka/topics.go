package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
)

// EnsureTopics creates missing topics and adds partitions to topics that follow
// another. Several nodes may call it concurrently. It returns fault.Conflict if a
// topic has more partitions than event ids can represent, and fault.Unavailable if a
// topic is missing and brokers are unavailable.
func (c *Cluster) EnsureTopics(ctx context.Context, specs []topics.Spec) error {
	have, err := c.topicsByName(ctx)
	if err != nil {
		return err
	}
	var missing []topics.Spec
	for _, s := range specs {
		if _, exists := have[s.Name]; !exists {
			s.Partitions = max(s.Partitions, have[s.Follows].Partitions)
			have[s.Name] = TopicInfo{Name: s.Name, Partitions: s.Partitions}
			missing = append(missing, s)
		}
	}
	if len(missing) > 0 {
		if err := c.createTopics(ctx, missing); err != nil {
			return err
		}
	}
	if have, err = c.topicsByName(ctx); err != nil {
		return err
	}
	for _, s := range specs {
		if n := have[s.Name].Partitions; n > event.MaxPartitions {
			return fault.New(fault.KindConflict, "topic %q has %d partitions, more than the %d that event ids have room for", s.Name, n, event.MaxPartitions)
		}
		if s.Follows != "" {
			partitions := have[s.Follows].Partitions
			if err := c.EnsurePartitions(ctx, s.Name, partitions); err != nil {
				return fmt.Errorf("growing topic %q: %w", s.Name, err)
			}
			t := have[s.Name] // another topic may follow this one
			t.Partitions = max(t.Partitions, partitions)
			have[s.Name] = t
		}
	}
	return nil
}

// followInterval is the maximum time for which a topic has fewer partitions than the
// one it follows.
const followInterval = 2 * time.Second

// FollowPartitions adds partitions to topics that follow another, until ctx ends.
func (c *Cluster) FollowPartitions(ctx context.Context, specs []topics.Spec) error {
	failing := false
	for range retry.Ticks(ctx, followInterval) {
		err := c.growFollowers(ctx, specs)
		if err != nil && !failing && ctx.Err() == nil {
			c.log.Warn("adding partitions to topics failed", "error", err)
		}
		failing = err != nil
	}
	return nil
}

func (c *Cluster) growFollowers(ctx context.Context, specs []topics.Spec) error {
	names := make([]string, len(specs))
	for i, s := range specs {
		names[i] = c.topic(s.Name)
	}
	m, err := c.requestMetadata(ctx, names)
	if err != nil {
		return asFault(err, "counting partitions")
	}
	partitions := map[string]int{}
	for _, t := range m.topics {
		partitions[t.name] = len(t.leaders)
	}
	for _, s := range specs {
		if have, want := partitions[c.topic(s.Name)], partitions[c.topic(s.Follows)]; s.Follows != "" && have > 0 && have < want {
			if err := c.EnsurePartitions(ctx, s.Name, want); err != nil {
				return fmt.Errorf("growing topic %q: %w", s.Name, err)
			}
			partitions[c.topic(s.Name)] = want // another topic may follow this one
		}
	}
	return nil
}

// EnsurePartitions extends a topic that has fewer than n partitions to n. Keys then map to other partitions, so
// the records of an account are ordered only among those written before, and among
// those written after.
func (c *Cluster) EnsurePartitions(ctx context.Context, topic string, n int) error {
	if n > event.MaxPartitions {
		return fault.New(fault.KindInvalid, "a topic of events has at most %d partitions", event.MaxPartitions)
	}
	have := 0
	err := withRetries(ctx, func() error {
		t, err := c.leaders.refresh(ctx, c.topic(topic))
		if err == nil {
			have = len(t.partitions)
		}
		return err
	})
	if err != nil {
		return asFault(err, "counting partitions")
	}
	if have >= n {
		return nil
	}
	client, closeClient := c.newAdminClient()
	defer closeClient()
	res, err := client.CreatePartitions(ctx, &kafkago.CreatePartitionsRequest{
		Topics: []kafkago.TopicPartitionsConfig{{Name: c.topic(topic), Count: int32(n)}},
	})
	if err == nil {
		err = res.Errors[c.topic(topic)]
	}
	if err != nil {
		// Another node may already have added them.
		if count, countErr := c.Partitions(ctx, topic); countErr == nil && count >= n {
			return nil
		}
		return asFault(err, "adding partitions")
	}
	c.log.Info("topic has more partitions", "topic", topic, "partitions", n)
	return c.awaitPartitions(ctx, topic, n)
}

func (c *Cluster) topicsByName(ctx context.Context) (map[string]TopicInfo, error) {
	topics, err := c.Topics(ctx)
	if err != nil {
		return nil, err
	}
	byName := make(map[string]TopicInfo, len(topics))
	for _, t := range topics {
		byName[t.Name] = t
	}
	return byName, nil
}

func (c *Cluster) createTopics(ctx context.Context, specs []topics.Spec) error {
	replicas, err := c.replicas(ctx)
	if err != nil {
		return err
	}
	if replicas < wantedReplicas && c.cfg.ReplicationFactor == 0 {
		c.log.Warn("topics get fewer than three replicas, as Kafka has no more brokers: if it will have more, set kafka.replication_factor before the first start", "replicas", replicas)
	}
	for _, s := range specs {
		if err := c.createTopic(ctx, s, replicas); err != nil {
			return fmt.Errorf("creating topic %q: %w", s.Name, err)
		}
	}
	return nil
}

// createTopic creates one topic and waits until the brokers have it. With two or more
// replicas a record is acknowledged after two brokers have stored it.
func (c *Cluster) createTopic(ctx context.Context, s topics.Spec, replicas int) error {
	topic := kafkago.TopicConfig{Topic: c.topic(s.Name), NumPartitions: s.Partitions, ReplicationFactor: replicas}
	for name, value := range s.Config {
		topic.ConfigEntries = append(topic.ConfigEntries, kafkago.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	if replicas >= 2 && s.Config[configMinInSync] == "" {
		topic.ConfigEntries = append(topic.ConfigEntries, kafkago.ConfigEntry{ConfigName: configMinInSync, ConfigValue: "2"})
	}
	client, closeClient := c.newAdminClient()
	defer closeClient()
	res, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err == nil {
		err = res.Errors[topic.Topic]
	}
	if errors.Is(err, kafkago.TopicAlreadyExists) { // another node has created it
		return c.awaitPartitions(ctx, s.Name, 1)
	}
	if err != nil {
		return asFault(err, "creating a topic")
	}
	c.log.Info("topic created", "topic", s.Name, "partitions", s.Partitions, "replication_factor", replicas)
	return c.awaitPartitions(ctx, s.Name, s.Partitions)
}

// wantedReplicas is the default replication factor if there are enough brokers.
const wantedReplicas = 3

// replicas returns the replication factor of new topics: the setting, or else the
// number of brokers in the cluster, at most wantedReplicas. It returns
// fault.Unavailable while fewer brokers are known than configured: the start order of
// brokers must not decide permanently how safe records are.
func (c *Cluster) replicas(ctx context.Context) (int, error) {
	if c.cfg.ReplicationFactor > 0 {
		return c.cfg.ReplicationFactor, nil
	}
	brokers, err := c.countBrokers(ctx)
	if err != nil {
		return 0, err
	}
	addresses := append([]string(nil), c.cfg.Brokers...)
	slices.Sort(addresses)
	if configured := min(wantedReplicas, len(slices.Compact(addresses))); brokers < configured {
		return 0, fault.Unavailable(fmt.Errorf("%d brokers are known, kafka.brokers has %d: start the others, or set kafka.replication_factor", brokers, configured),
			retryAfter, "brokers are missing")
	}
	return min(wantedReplicas, brokers), nil
}

// countBrokers counts the brokers of the cluster: all registered ones since Kafka 4.0,
// only running ones before.
func (c *Cluster) countBrokers(ctx context.Context) (int, error) {
	m, err := c.requestMetadata(ctx, []string{})
	if err != nil {
		return 0, asFault(err, "counting brokers")
	}
	registered, err := c.registeredBrokers(ctx)
	if err != nil { // an older Kafka, or the request is not permitted
		registered = 0
	}
	return max(registered, len(m.brokers), 1), nil
}

// registeredBrokers counts the registered brokers, running or not (KIP-1073).
func (c *Cluster) registeredBrokers(ctx context.Context) (int, error) {
	req := kmsg.NewPtrDescribeClusterRequest()
	req.Version, req.IncludeFencedBrokers = describeClusterVersion, true
	res, err := c.request(ctx, "", req)
	if err != nil {
		return 0, err
	}
	response := res.(*kmsg.DescribeClusterResponse)
	return len(response.Brokers), errorFromCode(response.ErrorCode)
}

// awaitPartitions waits until the topic's partitions have leaders: brokers respond to
// a change before all of them have applied it.
func (c *Cluster) awaitPartitions(ctx context.Context, topic string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*requestTimeout)
	defer cancel()
	backoff := retry.Backoff{First: 5 * time.Millisecond, Max: 500 * time.Millisecond}
	for {
		t, err := c.leaders.refresh(ctx, c.topic(topic))
		if err == nil && len(t.partitions) >= n && haveLeaders(t.partitions) {
			return nil
		}
		if !backoff.Wait(ctx) {
			return asFault(errors.Join(ctx.Err(), err), "waiting for a topic")
		}
	}
}

func haveLeaders(partitions []leadership) bool {
	for _, l := range partitions {
		if l.address == "" {
			return false
		}
	}
	return true
}

// newAdminClient returns a kafka-go client for the rare requests that change or describe
// topics. They are routed by the metadata of all topics, which the regular transport
// does not have, so the client has its own transport. The function closes it.
func (c *Cluster) newAdminClient() (*kafkago.Client, func()) {
	t := &kafkago.Transport{
		Dial: c.transport.Dial, DialTimeout: dialTimeout, ClientID: clientID,
	}
	return &kafkago.Client{Addr: c.seeds, Timeout: 2 * requestTimeout, Transport: t}, t.CloseIdleConnections
}
