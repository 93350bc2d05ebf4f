package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/config/settings"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

// reindexed is what the command prints.
func (w *world) reindexed(s *settings.Settings, cluster *kafka.Cluster) string {
	w.t.Helper()
	var out, errs bytes.Buffer
	p := &program{in: strings.NewReader(""), out: &out, err: &errs, env: w.env}
	if err := p.reindex(w.t.Context(), s, cluster); err != nil {
		w.t.Fatal(err)
	}
	return out.String()
}

func TestReindexBesideAServer(t *testing.T) {
	w := newWorld(t)
	cluster := w.openServer()
	s := settings.Default()
	s.DataDir = w.dir
	const nothing = "0 records read, 0 rows written, 0 records were no call record\n"
	if out := w.reindexed(s, cluster); out != nothing {
		t.Errorf("without a topic it prints %q", out)
	}
	if err := cluster.EnsureTopics(t.Context(), kafka.Specs(2)); err != nil {
		t.Fatal(err)
	}
	if out := w.reindexed(s, cluster); out != nothing {
		t.Errorf("with an empty topic it prints %q", out)
	}
	producer := cluster.NewProducer(kafka.ProducerConfig{})
	defer producer.Close(t.Context())
	now := time.Now().Unix()
	for n := range 10 {
		value := fmt.Sprintf(`{"id":"r%d","account_id":"demo","call_id":"c%d","interaction_id":"i","timestamp":%d}`, n, n, now)
		if n == 9 {
			value = `{}`
		}
		err := producer.Produce(t.Context(), kafka.Record{
			Topic: event.TopicCDR, Partition: n % 2, Key: []byte("demo"), Value: []byte(value),
			Headers: []kafka.Header{{Key: event.HeaderPosition, Value: fmt.Appendf(nil, "%d:%d", n%2, n)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if out := w.reindexed(s, cluster); out != "10 records read, 9 rows written, 1 records were no call record\n" {
			t.Errorf("prints %q", out)
		}
	}
	if n := w.callRecords(s, now); n != 9 {
		t.Errorf("%d rows", n)
	}
}

func (w *world) callRecords(s *settings.Settings, now int64) int {
	w.t.Helper()
	p := &program{err: &bytes.Buffer{}}
	db, err := backend.Database(w.t.Context(), s, p.toolLog())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func(db *sqldb.DB) { _ = db.Close() }(db)
	index, err := cdrindex.New(w.t.Context(), cdrindex.Config{}, db, prometheus.NewRegistry(), p.toolLog())
	if err != nil {
		w.t.Fatal(err)
	}
	page, err := index.List(w.t.Context(), cdrindex.Filter{Account: "demo", Start: now, End: now})
	if err != nil {
		w.t.Fatal(err)
	}
	return len(page.Data)
}
