package kafka

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	kafkago "github.com/segmentio/kafka-go"

	"trunkline/event/topics"
)

const (
	configTimestampType   = "message.timestamp.type"
	configMaxBytes        = "max.message.bytes"
	configMinInSync       = "min.insync.replicas"
	configCleanupPolicy   = "cleanup.policy"
	configUncleanElection = "unclean.leader.election.enable"

	logAppendTime = "LogAppendTime"
)

// TopicProblem describes a setting of an existing topic that does not meet Trunkline's
// requirements.
type TopicProblem struct {
	Topic   string // base name
	Message string // includes topic and setting
	Unsafe  bool   // acknowledged records may be lost, or records rejected
}

// CheckTopics returns the problems of the existing topics.
func (c *Cluster) CheckTopics(ctx context.Context, specs []topics.Spec) ([]TopicProblem, error) {
	topics, err := c.topicsByName(ctx)
	if err != nil {
		return nil, err
	}

	brokers, err := c.countBrokers(ctx)
	if err != nil {
		return nil, err
	}

	var existing []string
	for _, s := range specs {
		_, exists := topics[s.Name]
		if exists {
			existing = append(existing, s.Name)
		}
	}

	var configs map[string]map[string]string
	err = withRetries(ctx, func() error {
		configs, err = c.topicConfigs(ctx, existing)
		return err
	})
	if err != nil {
		return nil, asFault(err, "reading topic settings")
	}

	replicas := c.cfg.ReplicationFactor
	// The rule of new topics, see newTopicReplicas.
	if replicas == 0 {
		replicas = min(wantedReplicas, brokers)
	}

	var problems []TopicProblem
	for _, name := range existing {
		problems = append(problems, checkTopic(specOf(specs, name), topics[name], configs[name], replicas)...)
	}

	return problems, nil
}

func specOf(specs []topics.Spec, name string) topics.Spec {
	for _, s := range specs {
		if s.Name == name {
			return s
		}
	}
	return topics.Spec{Name: name}
}

// checkTopic compares a topic with its specification. It ignores settings that the
// broker does not report.
func checkTopic(s topics.Spec, t TopicInfo, config map[string]string, replicas int) (problems []TopicProblem) {
	add := func(unsafe bool, format string, args ...any) {
		message := fmt.Sprintf("topic %q has ", s.Name) + fmt.Sprintf(format, args...)
		problems = append(problems, TopicProblem{s.Name, message, unsafe})
	}

	if t.ReplicationFactor < replicas {
		add(false, "%d replicas: %d are possible", t.ReplicationFactor, replicas)
	}

	minInSync, err := strconv.Atoi(config[configMinInSync])
	if err == nil {
		switch {
		case minInSync > t.ReplicationFactor:
			add(true, "%s=%d and %d replicas: Kafka refuses every write", configMinInSync, minInSync,
				t.ReplicationFactor)
		case minInSync < 2 && t.ReplicationFactor >= 2:
			add(true, "%s=%d: an acknowledged record may be on one broker only, set it to 2", configMinInSync,
				minInSync)
		}
	}

	wantedPolicy := s.Config[configCleanupPolicy]
	if wantedPolicy == "" {
		wantedPolicy = "delete"
	}

	policy := config[configCleanupPolicy]
	if policy != "" && policy != wantedPolicy {
		add(true, "%s=%s: set it to %s, or Kafka removes records too early or never", configCleanupPolicy, policy,
			wantedPolicy)
	}
	if config[configUncleanElection] == "true" {
		add(true, "%s=true: a broker that lacks acknowledged records may become leader, set it to false",
			configUncleanElection)
	}

	maxBytes, err := strconv.Atoi(config[configMaxBytes])
	if err == nil && maxBytes < topics.MaxRecordBytes {
		add(true, "%s=%d: records of 1 MiB need %d", configMaxBytes, maxBytes, topics.MaxRecordBytes)
	}

	if s.Config[configTimestampType] == logAppendTime && config[configTimestampType] != logAppendTime {
		add(false, "%s=%s: event ids follow the producers' clocks, LogAppendTime is better", configTimestampType,
			config[configTimestampType])
	}

	return problems
}

// topicConfigs returns the relevant settings, by topic and name.
func (c *Cluster) topicConfigs(ctx context.Context, topics []string) (map[string]map[string]string, error) {
	req := &kafkago.DescribeConfigsRequest{}
	for _, t := range topics {
		req.Resources = append(req.Resources, kafkago.DescribeConfigRequestResource{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: c.withPrefix(t),
			ConfigNames: []string{configTimestampType, configMaxBytes, configMinInSync, configCleanupPolicy,
				configUncleanElection, configRetention},
		})
	}

	client, closeClient := c.newAdminClient()
	defer closeClient()

	res, err := client.DescribeConfigs(ctx, req)
	if err != nil {
		return nil, err
	}

	configs := map[string]map[string]string{}
	for _, r := range res.Resources {
		if r.Error != nil {
			return nil, r.Error
		}

		config := map[string]string{}
		for _, e := range r.ConfigEntries {
			config[e.ConfigName] = e.ConfigValue
		}

		configs[strings.TrimPrefix(r.ResourceName, c.cfg.TopicPrefix)] = config
	}

	return configs, nil
}
