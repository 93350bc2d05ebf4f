package kafka

import (
	"context"
	"fmt"
	"strconv"

	kafkago "github.com/segmentio/kafka-go"
)

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
