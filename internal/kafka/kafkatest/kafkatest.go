// Package kafkatest opens clusters for the tests of other packages, on an embedded
// broker that it starts or on any other broker.
package kafkatest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/embedded"
)

// OpenEmbedded returns a cluster on a new embedded broker. Both are closed at the end
// of the test.
func OpenEmbedded(t testing.TB, partitions int) *kafka.Cluster {
	t.Helper()
	return Open(t, Config(StartBroker(t, embedded.Config{})), partitions)
}

// StartBroker starts an embedded broker in a temporary directory and closes it at the
// end of the test. By default it keeps 32 GiB of records.
func StartBroker(t testing.TB, cfg embedded.Config) *embedded.Broker {
	t.Helper()
	cfg.Dir = t.TempDir()
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 32 << 30
	}

	b, err := embedded.Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Log(err)
		}
	})

	return b
}

// Config returns the configuration of a cluster on an embedded broker.
func Config(b *embedded.Broker) kafka.Config {
	return kafka.Config{Settings: kafka.DefaultSettings(embedded.Address), Dial: b.Dial}
}

// Open returns a cluster with all topics, each with the given number of partitions. It
// is closed at the end of the test.
func Open(t testing.TB, cfg kafka.Config, partitions int) *kafka.Cluster {
	t.Helper()
	cfg.Topics = topics.Names()
	c, err := kafka.Open(context.Background(), cfg, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)
	if err := c.EnsureTopics(context.Background(), topics.All(partitions)); err != nil {
		t.Fatal(err)
	}

	return c
}
