package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/event"
	"trunkline/internal/fault"
)

// EnsureTopics creates what is missing, gives topics that follow another as
// many partitions as that one, and logs what CheckTopics finds. Several nodes
// may do it at once. It fails when a topic has more partitions than ids have
// room for.
func (c *Cluster) EnsureTopics(ctx context.Context, specs []TopicSpec) error {
	have, err := c.topicMap(ctx)
	if err != nil {
		return err
	}
	for _, s := range specs {
		want := max(s.Partitions, have[s.Follows].Partitions)
		if _, there := have[s.Name]; there {
			continue
		}
		if err := c.createTopic(ctx, s, want); err != nil {
			return fmt.Errorf("creating topic %q: %w", s.Name, err)
		}
	}
	if have, err = c.topicMap(ctx); err != nil {
		return err
	}
	for _, s := range specs {
		if n := have[s.Name].Partitions; n > event.MaxPartitions {
			return fault.New(fault.KindConflict, "topic %q has %d partitions, more than the %d that event ids have room for", s.Name, n, event.MaxPartitions)
		}
		if s.Follows != "" {
			if err := c.Grow(ctx, s.Name, have[s.Follows].Partitions); err != nil {
				return fmt.Errorf("growing topic %q: %w", s.Name, err)
			}
		}
	}
	warnings, err := c.CheckTopics(ctx, specs)
	for _, w := range warnings {
		c.log.Warn(w)
	}
	return err
}

// Grow gives a topic at least n partitions. Keys find other partitions after
// that, so records of an account written before and after are in order only
// among themselves.
func (c *Cluster) Grow(ctx context.Context, topic string, n int) error {
	if n > event.MaxPartitions {
		return fault.New(fault.KindInvalid, "a topic of events has at most %d partitions", event.MaxPartitions)
	}
	have := 0
	err := severalTries(ctx, func() error {
		t, err := c.leaders.refresh(ctx, c.topic(topic))
		if err == nil {
			have = len(t.partitions)
		}
		return err
	})
	if err != nil {
		return away(err, "counting partitions")
	}
	if have >= n {
		return nil
	}
	client, done := c.admin()
	defer done()
	res, err := client.CreatePartitions(ctx, &kafkago.CreatePartitionsRequest{
		Topics: []kafkago.TopicPartitionsConfig{{Name: c.topic(topic), Count: int32(n)}},
	})
	if err == nil {
		err = res.Errors[c.topic(topic)]
	}
	if err != nil {
		// Another node may have been faster.
		if now, again := c.Partitions(ctx, topic); again == nil && now >= n {
			return nil
		}
		return away(err, "adding partitions")
	}
	c.log.Info("topic has more partitions", "topic", topic, "partitions", n)
	return c.awaitPartitions(ctx, topic, n)
}

func (c *Cluster) topicMap(ctx context.Context) (map[string]TopicInfo, error) {
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

// createTopic creates one topic and waits until brokers know it.
func (c *Cluster) createTopic(ctx context.Context, s TopicSpec, partitions int) error {
	replicas, err := c.replicas(ctx)
	if err != nil {
		return err
	}
	topic := kafkago.TopicConfig{Topic: c.topic(s.Name), NumPartitions: partitions, ReplicationFactor: replicas}
	for name, value := range s.Config {
		topic.ConfigEntries = append(topic.ConfigEntries, kafkago.ConfigEntry{ConfigName: name, ConfigValue: value})
	}
	if replicas >= 3 && s.Config[configMinInSync] == "" {
		topic.ConfigEntries = append(topic.ConfigEntries, kafkago.ConfigEntry{ConfigName: configMinInSync, ConfigValue: "2"})
	}
	client, done := c.admin()
	defer done()
	res, err := client.CreateTopics(ctx, &kafkago.CreateTopicsRequest{Topics: []kafkago.TopicConfig{topic}})
	if err == nil {
		err = res.Errors[topic.Topic]
	}
	if errors.Is(err, kafkago.TopicAlreadyExists) { // another node was faster
		return c.awaitPartitions(ctx, s.Name, 1)
	}
	if err != nil {
		return away(err, "creating a topic")
	}
	c.log.Info("topic created", "topic", s.Name, "partitions", partitions, "replication_factor", replicas)
	return c.awaitPartitions(ctx, s.Name, partitions)
}

// replicas is how many copies of a topic there are to be.
func (c *Cluster) replicas(ctx context.Context) (int, error) {
	if c.cfg.ReplicationFactor > 0 {
		return c.cfg.ReplicationFactor, nil
	}
	m, err := c.askMetadata(ctx, []string{})
	if err != nil {
		return 0, away(err, "counting brokers")
	}
	return min(3, max(len(m.brokers), 1)), nil
}

// awaitPartitions waits until the topic's partitions have leaders: brokers
// answer a change before all of them know it.
func (c *Cluster) awaitPartitions(ctx context.Context, topic string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 3*requestTimeout)
	defer cancel()
	wait := backoff{first: 5 * time.Millisecond, most: 500 * time.Millisecond}
	for {
		t, err := c.leaders.refresh(ctx, c.topic(topic))
		if err == nil && len(t.partitions) >= n && allLed(t.partitions) {
			return nil
		}
		if !wait.sleep(ctx) {
			return away(errors.Join(ctx.Err(), err), "waiting for a topic")
		}
	}
}

func allLed(partitions []leadership) bool {
	for _, l := range partitions {
		if l.address == "" {
			return false
		}
	}
	return true
}

// admin is a kafka-go client for the rare requests that change or describe
// topics. It routes them by the whole cluster's layout, which the transport of
// everyday does not keep, so it has one of its own for as long as it is used.
func (c *Cluster) admin() (*kafkago.Client, func()) {
	t := &kafkago.Transport{
		Dial: c.transport.Dial, DialTimeout: dialTimeout, ClientID: c.transport.ClientID,
		TLS: c.transport.TLS, SASL: c.transport.SASL,
	}
	return &kafkago.Client{Addr: c.seeds, Timeout: 2 * requestTimeout, Transport: t}, t.CloseIdleConnections
}
