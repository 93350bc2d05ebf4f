package kafka

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/testservice"
)

func TestReplicasAreNotDecidedByWhoIsUpFirst(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(3))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()

	addresses := fake.ListenAddrs()
	for _, id := range []int32{0, 1} {
		if err := fake.RemoveNode(id); err != nil {
			t.Fatal(err)
		}
	}

	open := func(cfg Config) *Cluster {
		c, err := Open(context.Background(), cfg, nil, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}

	spec := []topics.Spec{{Name: "t", Partitions: 1}}
	c := open(Config{Settings: DefaultSettings(addresses...)})
	if err := c.EnsureTopics(t.Context(), spec); fault.KindOf(err) != fault.KindUnavailable {
		t.Fatalf("with one of three brokers up: %v", err)
	}

	for _, id := range []int32{0, 1} {
		if _, _, err := fake.AddNode(id, 0); err != nil {
			t.Fatal(err)
		}
	}

	if err := c.EnsureTopics(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if info := fake.TopicInfo("t"); info.NumReplicas != 3 || *info.Configs[configMinInSync] != "2" {
		t.Errorf("%d replicas, %v", info.NumReplicas, info.Configs)
	}

	settings := DefaultSettings(addresses...)
	settings.ReplicationFactor = 2
	settings.TopicPrefix = "two."
	two := open(Config{Settings: settings})
	if err := two.EnsureTopics(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if info := fake.TopicInfo("two.t"); info.NumReplicas != 2 || *info.Configs[configMinInSync] != "2" {
		t.Errorf("as set: %d replicas, %v", info.NumReplicas, info.Configs)
	}
}

func TestRegisteredBrokersAreCounted(t *testing.T) {
	c, err := Open(t.Context(), Config{Settings: DefaultSettings(testservice.Kafka(t)...)}, nil,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	n, err := c.registeredBrokers(t.Context())
	// each has 5 s for an answer
	for deadline := time.Now().Add(3 * time.Minute); err != nil && time.Now().Before(deadline); {
		n, err = c.registeredBrokers(t.Context())
	}

	if n != 1 || err != nil {
		t.Errorf("%d brokers, %v", n, err) // Kafka before 4.0 has no answer
	}
}
