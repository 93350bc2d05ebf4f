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
// another. Several nodes may call it concurrently. It returns fault.KindConflict if a
// topic has more partitions than event ids can represent, and fault.KindUnavailable if
// Kafka is unavailable, or a topic is missing and fewer brokers are known than configured.
func (c *Cluster) EnsureTopics(ctx context.Context, specs []topics.Spec) error {
	have, err := c.topicsByName(ctx)
	if err != nil {
		return err
	}

	var missing []topics.Spec
	for _, s := range specs {
		_, exists := have[s.Name]
		if !exists {
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

	// Again: another node may have created topics with other numbers of partitions meanwhile.
	have, err = c.topicsByName(ctx)
	if err != nil {
		return err
	}

	for _, s := range specs {
		n := have[s.Name].Partitions
		if n > event.MaxPartitions {
			return fault.New(fault.KindConflict,
				"topic %q has %d partitions, more than the %d that event ids have room for", s.Name, n,
				event.MaxPartitions)
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

// keepInterval is the time between two looks of KeepTopics.
const keepInterval = 2 * time.Second

// KeepTopics creates topics that were deleted, and adds partitions to topics that follow another, until ctx
// ends. With create false it only counts the missing topics. Consumers find that a topic's log is a new one,
// and what was in it is lost.
func (c *Cluster) KeepTopics(ctx context.Context, specs []topics.Spec, create bool) error {
	failing := false
	for range retry.Ticks(ctx, keepInterval) {
		err := c.keepTopicsOnce(ctx, specs, create)
		if err != nil && !failing && ctx.Err() == nil {
			c.log.Warn("creating missing topics or adding partitions failed", "error", err)
		}
		failing = err != nil
	}
	return nil
}

// MissingTopics returns the topics that were missing when KeepTopics last looked.
func (c *Cluster) MissingTopics() []string {
	missing := c.lastMissingTopics.Load()
	if missing == nil {
		return nil
	}
	return *missing
}

func (c *Cluster) keepTopicsOnce(ctx context.Context, specs []topics.Spec, create bool) error {
	partitions, missing, err := c.partitionsByTopic(ctx, specs)
	if err != nil {
		return err
	}

	c.setMissing(missing)
	if !create {
		return nil
	}

	if len(missing) > 0 {
		if err := c.recreateTopics(ctx, specs, missing, partitions); err != nil {
			return err
		}
		c.setMissing(nil)
	}

	for _, s := range specs {
		have, want := partitions[s.Name], partitions[s.Follows]
		if s.Follows != "" && have > 0 && have < want {
			if err := c.EnsurePartitions(ctx, s.Name, want); err != nil {
				return fmt.Errorf("growing topic %q: %w", s.Name, err)
			}
			partitions[s.Name] = want // another topic may follow this one
		}
	}

	return nil
}

// partitionsByTopic returns the numbers of partitions by topic, and the topics that do not exist.
func (c *Cluster) partitionsByTopic(ctx context.Context,
	specs []topics.Spec) (partitions map[string]int, missing []string, err error) {
	names, base := make([]string, len(specs)), map[string]string{}
	for i, s := range specs {
		names[i] = c.withPrefix(s.Name)
		base[names[i]] = s.Name
	}

	m, err := c.requestMetadata(ctx, names)
	if err != nil {
		return nil, nil, asFault(err, "counting partitions")
	}

	partitions = map[string]int{}
	for _, t := range m.topics {
		partitions[base[t.name]] = len(t.leaders)
		if errors.Is(t.err, kafkago.UnknownTopicOrPartition) {
			missing = append(missing, base[t.name])
		}
	}

	return partitions, missing, nil
}

func (c *Cluster) setMissing(missing []string) {
	c.lastMissingTopics.Store(&missing)
	c.metrics.missingTopics.Set(float64(len(missing)))
}

// recreateTopics creates the missing topics, with as many partitions as the topics that they follow or that
// follow them, and sets their numbers in partitions.
func (c *Cluster) recreateTopics(ctx context.Context, specs []topics.Spec, missing []string,
	partitions map[string]int) error {
	var again []topics.Spec
	for _, s := range specs {
		if !slices.Contains(missing, s.Name) {
			continue
		}

		s.Partitions = max(s.Partitions, partitions[s.Follows])
		for _, follower := range specs {
			// A follower that exists shows how many the lost topic had: with fewer, keys would move.
			if follower.Follows == s.Name {
				s.Partitions = max(s.Partitions, partitions[follower.Name])
			}
		}

		again = append(again, s)
		partitions[s.Name] = s.Partitions
	}

	c.log.Error("topics are missing, and are created again: what they held is lost", "topics", missing)
	if err := c.createTopics(ctx, again); err != nil {
		return err
	}

	for _, s := range again {
		c.metrics.recreatedTopics.WithLabelValues(s.Name).Inc()
	}

	return nil
}

// EnsurePartitions extends a topic that has fewer than n partitions to n. Keys then map to other
// partitions, so the records of an account are ordered only among those written before, and among
// those written after. It returns fault.KindInvalid if n is more than event.MaxPartitions.
func (c *Cluster) EnsurePartitions(ctx context.Context, topic string, n int) error {
	if n > event.MaxPartitions {
		return fault.New(fault.KindInvalid, "a topic of events has at most %d partitions", event.MaxPartitions)
	}

	have := 0
	err := withRetries(ctx, func() error {
		t, err := c.leaders.refresh(ctx, c.withPrefix(topic))
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
		Topics: []kafkago.TopicPartitionsConfig{{Name: c.withPrefix(topic), Count: int32(n)}},
	})
	if err == nil {
		err = res.Errors[c.withPrefix(topic)]
	}
	if err != nil {
		// Another node may already have added them.
		count, countErr := c.Partitions(ctx, topic)
		if countErr == nil && count >= n {
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
	replicas, err := c.newTopicReplicas(ctx)
	if err != nil {
		return err
	}

	if replicas < wantedReplicas && c.cfg.ReplicationFactor == 0 {
		c.log.Warn("topics get fewer than three replicas, as Kafka has no more brokers: if it will have more, set kafka.replication_factor before the first start",
			"replicas", replicas)
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
	topic := kafkago.TopicConfig{Topic: c.withPrefix(s.Name), NumPartitions: s.Partitions, ReplicationFactor: replicas}
	for name, value := range s.Config {
		topic.ConfigEntries = append(topic.ConfigEntries, kafkago.ConfigEntry{ConfigName: name, ConfigValue: value})
	}

	if replicas >= 2 && s.Config[configMinInSync] == "" {
		topic.ConfigEntries = append(topic.ConfigEntries,
			kafkago.ConfigEntry{ConfigName: configMinInSync, ConfigValue: "2"})
	}

	client, closeClient := c.newAdminClient()
	defer closeClient()

	res, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err == nil {
		err = res.Errors[topic.Topic]
	}
	if errors.Is(err, kafkago.TopicAlreadyExists) { // another node has created it
		// One is enough: that node chose the number, and EnsureTopics looks at it afterwards.
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

// newTopicReplicas returns the replication factor of new topics: the setting, or else the
// number of brokers in the cluster, at most wantedReplicas. It returns
// fault.KindUnavailable while fewer brokers are known than configured: the start order of
// brokers must not decide permanently how safe records are.
func (c *Cluster) newTopicReplicas(ctx context.Context) (int, error) {
	if c.cfg.ReplicationFactor > 0 {
		return c.cfg.ReplicationFactor, nil
	}

	brokers, err := c.countBrokers(ctx)
	if err != nil {
		return 0, err
	}

	addresses := append([]string(nil), c.cfg.Brokers...)
	slices.Sort(addresses)
	configured := min(wantedReplicas, len(slices.Compact(addresses)))
	if brokers < configured {
		return 0, fault.Unavailable(
			fmt.Errorf("%d brokers are known, kafka.brokers has %d: start the others, or set kafka.replication_factor",
				brokers, configured),
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
		t, err := c.leaders.refresh(ctx, c.withPrefix(topic))
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
