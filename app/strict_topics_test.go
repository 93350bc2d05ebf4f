package app

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/settings"
)

func TestStrictRefusesTopicsThatEndangerRecords(t *testing.T) {
	s := settings.Default()
	s.DataDir = t.TempDir()
	log := slog.New(slog.DiscardHandler)
	cluster, closeKafka, err := backend.OpenKafka(t.Context(), s, nil, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer closeKafka()

	compacted := topics.Spec{Name: event.TopicCDR, Partitions: 1,
		Config: map[string]string{"cleanup.policy": "compact"}}
	if err := cluster.EnsureTopics(t.Context(), []topics.Spec{compacted}); err != nil {
		t.Fatal(err)
	}

	a := &base{process: &process{settings: s, log: log, health: &health{}}, cluster: cluster}
	if err := a.ensureTopics(t.Context()); err != nil {
		t.Errorf("by default: %v", err)
	}

	s.Kafka.Strict = true
	err = a.ensureTopics(t.Context())
	if !fault.IsPermanent(err) || !strings.Contains(err.Error(), "cleanup.policy=compact") {
		t.Errorf("with kafka.strict: %v", err)
	}
}
