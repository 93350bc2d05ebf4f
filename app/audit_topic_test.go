package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/audit"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
	"trunkline/settings"
)

// Two nodes write to one topic of a real Kafka, in the order of the chain.
func TestTheAuditTopicHasTheChain(t *testing.T) {
	s := settings.Default()
	s.DataDir = t.TempDir()
	s.Audit.Topic = true
	s.Kafka.Partitions = 1
	s.Kafka.Brokers, s.Kafka.TopicPrefix = testservice.Kafka(t), testservice.Prefix(t)
	log := slog.New(slog.DiscardHandler)
	cluster, closeKafka, err := backend.OpenKafka(t.Context(), s, nil, prometheus.NewRegistry(), log)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := closeKafka(); err != nil {
			t.Error(err)
		}
	}()

	ctx := t.Context()
	var nodes []*audit.Log
	for range 2 {
		db, err := backend.OpenDatabase(ctx, s, log)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()

		producer := cluster.NewProducer(kafka.ProducerConfig{})
		defer producer.Close(ctx)

		node, err := audit.New(ctx, s.Audit,
			audit.Deps{DB: db, Publisher: auditTopic{producer}, Metrics: prometheus.NewRegistry(), Log: log})
		if err != nil {
			t.Fatal(err)
		}

		nodes = append(nodes, node)
	}

	var recorded []string
	record := func(node *audit.Log, accounts ...string) {
		for _, account := range accounts {
			e := node.Entry(audit.WithCaller(ctx, audit.Caller{Actor: "user:u", Address: "203.0.113.7"}), audit.Login,
				account, "api")
			if err := node.Record(ctx, e); err != nil {
				t.Fatal(err)
			}
			recorded = append(recorded, e.ID)
		}
	}

	until, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()

	record(nodes[0], "acme", "") // before the topic exists
	for _, node := range nodes {
		running.Go(func() {
			if err := node.Run(until); err != nil {
				t.Error(err)
			}
		})
	}

	if err := cluster.EnsureTopics(ctx, backend.TopicSpecs(s)); err != nil {
		t.Fatal(err)
	}

	for i := range 10 {
		record(nodes[i%2], "acme", "other")
	}

	reader := cluster.NewReader(event.TopicAudit, 0, 0)
	defer reader.Close()

	type published struct {
		ID        string  `json:"id"`
		At        float64 `json:"at"`
		AccountID string  `json:"account_id"`
		Seq       int     `json:"seq"`
		Prev      string  `json:"prev"`
		Hash      string  `json:"hash"`
	}
	var last published

	var ids []string
	for len(ids) < len(recorded) {
		records, err := reader.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}

		for _, r := range records {
			var e published
			if err := json.Unmarshal(r.Value, &e); err != nil {
				t.Fatalf("%s: %v", r.Value, err)
			}
			if e.Seq <= last.Seq { // published again, after a failure
				continue
			}
			if e.Seq != last.Seq+1 || e.Prev != last.Hash || string(r.Key) != e.AccountID {
				t.Errorf("after %+v came %+v with the key %q", last, e, r.Key)
			}
			if age := time.Since(time.UnixMilli(int64(e.At * 1000))); age < -time.Minute || age > 10*time.Minute {
				t.Errorf("it was %s ago", age)
			}

			last, ids = e, append(ids, e.ID)
		}
	}

	slices.Sort(ids)
	slices.Sort(recorded)
	if !slices.Equal(ids, recorded) {
		t.Error("the topic has other entries than were recorded")
	}

	verified, err := nodes[0].Verify(ctx, audit.KnownHead{Seq: int64(last.Seq), Hash: last.Hash}, func(int, int) {})
	if err != nil || verified.Last != int64(last.Seq) {
		t.Errorf("the chain is not that of the topic: %+v, %v", verified, err)
	}
}
