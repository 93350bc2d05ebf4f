package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/event"
	"trunkline/internal/fault"
)

// TopicSpec is how a topic is to be.
type TopicSpec struct {
	Name       string // base name
	Partitions int    // when it is created; an existing topic keeps its own
	Follows    string // topic whose partition n becomes this one's partition n: it has at least as many
	Config     map[string]string
}

const (
	configTimestampType = "message.timestamp.type"
	configMaxBytes      = "max.message.bytes"
	configMinInSync     = "min.insync.replicas"
	configMaxAhead      = "message.timestamp.after.max.ms"

	logAppendTime = "LogAppendTime"
)

// Specs are Trunkline's topics, made with the given number of partitions.
//
// Raw topics are stamped by the broker: ids come from those times. Normalized
// records carry the time of their id, which may run ahead of a clock that was
// set back, so the broker must not refuse it.
func Specs(partitions int) []TopicSpec {
	size := strconv.Itoa(MaxRecordBytes)
	raw := map[string]string{configMaxBytes: size, configTimestampType: logAppendTime}
	made := map[string]string{configMaxBytes: size, configMaxAhead: "9223372036854775807"}
	return []TopicSpec{
		{Name: event.TopicRaw, Partitions: partitions, Config: raw},
		{Name: event.TopicCDRRaw, Partitions: partitions, Config: raw},
		{Name: event.TopicEvents, Partitions: partitions, Follows: event.TopicRaw, Config: made},
		{Name: event.TopicCDR, Partitions: partitions, Follows: event.TopicCDRRaw, Config: made},
		{Name: event.TopicDead, Partitions: partitions, Config: made},
	}
}

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
	have, err := c.Partitions(ctx, topic)
	if err != nil || have >= n {
		return err
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

// CheckTopics says in words which settings of existing topics will cause
// trouble.
func (c *Cluster) CheckTopics(ctx context.Context, specs []TopicSpec) ([]string, error) {
	have, err := c.topicMap(ctx)
	if err != nil {
		return nil, err
	}
	replicas, err := c.replicas(ctx)
	if err != nil {
		return nil, err
	}
	var warnings []string
	for _, s := range specs {
		t, there := have[s.Name]
		if !there {
			continue
		}
		if t.ReplicationFactor < replicas {
			warnings = append(warnings, fmt.Sprintf("topic %q has %d replicas, there could be %d", s.Name, t.ReplicationFactor, replicas))
		}
		if t.Partitions < s.Partitions && s.Follows == "" {
			warnings = append(warnings, fmt.Sprintf("topic %q has %d partitions, %d are configured", s.Name, t.Partitions, s.Partitions))
		}
		config, err := c.topicConfig(ctx, s.Name)
		if err != nil {
			return warnings, err
		}
		if s.Config[configTimestampType] == logAppendTime && config[configTimestampType] != logAppendTime {
			warnings = append(warnings, fmt.Sprintf("topic %q has %s=%s: event ids follow the producers' clocks, LogAppendTime is better",
				s.Name, configTimestampType, config[configTimestampType]))
		}
		if most, err := strconv.Atoi(config[configMaxBytes]); err == nil && most < MaxRecordBytes {
			warnings = append(warnings, fmt.Sprintf("topic %q has %s=%d: records of 1 MiB need %d", s.Name, configMaxBytes, most, MaxRecordBytes))
		}
	}
	return warnings, nil
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
		if err == nil && len(t.leaders) >= n && allLed(t.leaders) {
			return nil
		}
		if !wait.sleep(ctx) {
			return away(errors.Join(ctx.Err(), err), "waiting for a topic")
		}
	}
}

func allLed(leaders []string) bool {
	for _, l := range leaders {
		if l == "" {
			return false
		}
	}
	return true
}

func (c *Cluster) topicConfig(ctx context.Context, topic string) (map[string]string, error) {
	client, done := c.admin()
	defer done()
	res, err := client.DescribeConfigs(ctx, &kafkago.DescribeConfigsRequest{Resources: []kafkago.DescribeConfigRequestResource{{
		ResourceType: kafkago.ResourceTypeTopic, ResourceName: c.topic(topic),
		ConfigNames: []string{configTimestampType, configMaxBytes},
	}}})
	if err != nil {
		return nil, away(err, "reading topic settings")
	}
	config := map[string]string{}
	for _, r := range res.Resources {
		if r.Error != nil {
			return nil, away(r.Error, "reading topic settings")
		}
		for _, e := range r.ConfigEntries {
			config[e.ConfigName] = e.ConfigValue
		}
	}
	return config, nil
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
