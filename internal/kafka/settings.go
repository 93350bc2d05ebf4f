package kafka

import (
	"strings"

	"trunkline/event"
	"trunkline/internal/kafka/credentials"
	"trunkline/internal/setting"
	"trunkline/internal/tlsclient"
)

// Settings holds the settings of the Kafka client.
type Settings struct {
	Brokers           []string             `yaml:"brokers" doc:"bootstrap addresses, host:port; empty: the embedded broker"`
	TopicPrefix       string               `yaml:"topic_prefix" doc:"prefix of every topic name"`
	Partitions        int                  `yaml:"partitions" doc:"partitions of the topics that Trunkline creates"`
	ReplicationFactor int                  `yaml:"replication_factor" doc:"replicas of the topics that Trunkline creates; 0: three, or as many as there are brokers once all of kafka.brokers have been seen"`
	CreateTopics      bool                 `yaml:"create_topics" doc:"create missing topics"`
	Strict            bool                 `yaml:"strict" doc:"refuse to start where settings of existing topics endanger acknowledged records; off: log them"`
	Compression       string               `yaml:"compression" doc:"compression of produced batches: none, lz4 or zstd"`
	TLS               tlsclient.Settings   `yaml:"tls"`
	SASL              credentials.Settings `yaml:"sasl"`
}

// DefaultSettings returns the default settings for these brokers.
func DefaultSettings(brokers ...string) Settings {
	return Settings{Brokers: brokers, Partitions: 64, CreateTopics: true, Compression: "none"}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	for _, broker := range s.Brokers {
		c.Dialable("brokers", broker)
	}

	for _, r := range s.TopicPrefix {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", r) {
			c.Must(false, "topic_prefix", "Kafka allows letters, digits and . _ - in a topic's name")
			break
		}
	}

	c.Must(len(s.TopicPrefix) <= 100, "topic_prefix", "must be at most 100 characters")
	c.Must(s.Partitions >= 1 && s.Partitions <= event.MaxPartitions, "partitions",
		"must be 1 to %d, is %d", event.MaxPartitions, s.Partitions)
	c.Must(s.ReplicationFactor >= 0 && s.ReplicationFactor <= 32767, "replication_factor",
		"must be 0 or a number of brokers, is %d", s.ReplicationFactor)
	s.TLS.Validate(c.Group("tls"))
	s.SASL.Validate(c.Group("sasl"))
	c.Must(s.SASL.Mechanism != "aws-msk-iam" || s.TLS.Enabled, "tls.enabled", "%s aws-msk-iam needs it",
		c.Key("sasl.mechanism"))
	c.OneOf("compression", s.Compression, "none", "lz4", "zstd")
}
