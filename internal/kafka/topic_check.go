package kafka

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
	var existing []string
	for _, s := range specs {
		if _, there := have[s.Name]; there {
			existing = append(existing, s.Name)
		}
	}
	var configs map[string]map[string]string
	err = severalTries(ctx, func() error {
		configs, err = c.topicConfigs(ctx, existing)
		return err
	})
	if err != nil {
		return nil, away(err, "reading topic settings")
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
		config := configs[s.Name]
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

// topicConfigs gives the settings that matter, by topic and name.
func (c *Cluster) topicConfigs(ctx context.Context, topics []string) (map[string]map[string]string, error) {
	req := &kafkago.DescribeConfigsRequest{}
	for _, t := range topics {
		req.Resources = append(req.Resources, kafkago.DescribeConfigRequestResource{
			ResourceType: kafkago.ResourceTypeTopic, ResourceName: c.topic(t),
			ConfigNames: []string{configTimestampType, configMaxBytes},
		})
	}
	client, done := c.admin()
	defer done()
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
