package main

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/config/settings"
	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
)

// onEachKafka runs a test beside a server with an embedded broker, and on a
// real Kafka.
func onEachKafka(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("embedded", func(t *testing.T) { test(t, newWorld(t)) })
	t.Run("kafka", func(t *testing.T) {
		w := newWorld(t)
		brokers := testservice.Kafka(t)
		w.env = []string{
			"TRUNKLINE_KAFKA_BROKERS=" + strings.Join(brokers, ","), "TRUNKLINE_KAFKA_TOPIC_PREFIX=" + testservice.Prefix(t),
		}
		test(t, w)
	})
}

// openServer opens Kafka as a running server does.
func (w *world) openServer() *kafka.Cluster {
	w.t.Helper()
	s, _, err := settings.Load(settings.Source{Env: w.env})
	if err != nil {
		w.t.Fatal(err)
	}
	s.DataDir = w.dir
	cluster, closeKafka, err := backend.Kafka(w.t.Context(), s, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := closeKafka(); err != nil {
			w.t.Error(err)
		}
	})
	return cluster
}

// died is when the first letter died: not so long ago that Kafka drops it.
var died = time.Now().Add(-time.Hour).Truncate(time.Second)

func dead(n int, topic, kind string) kafka.Record {
	return kafka.Record{
		Topic: event.TopicDead, Partition: n % 2, Time: died.Add(time.Duration(n) * time.Millisecond),
		Key: []byte("demo"), Value: []byte(`{"n":` + strconv.Itoa(n) + `}`),
		Headers: []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte("svc.cc")}, {Key: event.HeaderSource, Value: []byte("pbx")},
			{Key: event.HeaderErrorKind, Value: []byte(kind)}, {Key: event.HeaderError, Value: []byte("it was\x1b[2Jbad")},
			{Key: event.HeaderOrigTopic, Value: []byte(topic)},
			{Key: event.HeaderOrigPartition, Value: []byte("1")}, {Key: event.HeaderOrigOffset, Value: []byte("7")},
		},
	}
}

// bury makes the topics and some dead letters: 0, 2, 4 in partition 0, and
// 1, 3, 5 in partition 1; 4 and 5 are call records.
func bury(t *testing.T, cluster *kafka.Cluster) {
	t.Helper()
	if err := cluster.EnsureTopics(t.Context(), kafka.Specs(2)); err != nil {
		t.Fatal(err)
	}
	var records []kafka.Record
	for n := range 4 {
		records = append(records, dead(n, event.TopicRaw, "invalid"))
	}
	records = append(records, dead(4, event.TopicCDRRaw, "not_found"), dead(5, event.TopicCDRRaw, "not_found"))
	produce(t, cluster, records...)
}

func produce(t *testing.T, cluster *kafka.Cluster, records ...kafka.Record) {
	t.Helper()
	producer := cluster.NewProducer(kafka.ProducerConfig{})
	if err := producer.Produce(t.Context(), records...); err != nil {
		t.Fatal(err)
	}
	if err := producer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// values are the values of a topic, sorted.
func values(t *testing.T, cluster *kafka.Cluster, topic string) []string {
	t.Helper()
	partitions, err := cluster.Partitions(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for n := range partitions {
		first, next, err := cluster.Offsets(t.Context(), topic, n)
		if err != nil {
			t.Fatal(err)
		}
		reader := cluster.NewReader(topic, n, first)
		for reader.Next() < next {
			records, err := reader.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if string(r.Key) != "demo" || len(r.Headers) != 2 || string(r.Header(event.HeaderFormat)) != "svc.cc" {
					t.Errorf("came back as key %s, headers %v", r.Key, r.Headers)
				}
				all = append(all, string(r.Value))
			}
		}
		reader.Close()
	}
	slices.Sort(all)
	return all
}

func (w *world) expect(cluster *kafka.Cluster, topic string, want ...string) {
	w.t.Helper()
	if got := values(w.t, cluster, topic); !slices.Equal(got, want) {
		w.t.Errorf("%s holds %q, want %q", topic, got, want)
	}
}

func TestTopicsWithoutAServer(t *testing.T) {
	w := newWorld(t)
	w.must("topics", "create", "--kafka.partitions", "3")
	w.must("topics", "create")
	var topics []topicRow
	w.list(&topics, "topics", "list", "--json")
	if len(topics) != 5 || topics[0] != (topicRow{"cc.raw", 3, 1, 0}) {
		t.Errorf("topics list gives %+v", topics)
	}
	if out := w.must("topics", "list"); !strings.HasPrefix(out, "TOPIC ") || strings.Count(out, "\n") != 6 {
		t.Errorf("topics list prints %q", out)
	}
}

func TestDeadlettersBeforeThereAreTopics(t *testing.T) {
	w := newWorld(t)
	if out := w.must("deadletter", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("deadletter list prints %q", out)
	}
	if out := w.must("deadletter", "retry", "--all"); out != "0 sent back\n" {
		t.Errorf("deadletter retry prints %q", out)
	}
	w.fails(exitFailed, "there is no dead letter at 0:0", "deadletter", "retry", "0:0")
}

func TestDeadletterList(t *testing.T) { onEachKafka(t, checkDeadletterList) }

func checkDeadletterList(t *testing.T, w *world) {
	bury(t, w.openServer())
	positions := func(args ...string) string {
		t.Helper()
		var found []string
		for line := range strings.Lines(w.must(append([]string{"deadletter", "list", "--json"}, args...)...)) {
			var row letterRow
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			found = append(found, row.Position)
		}
		return strings.Join(found, " ")
	}
	for want, args := range map[string][]string{
		"0:0 1:0 0:1 1:1 0:2 1:2": nil,
		"0:0 1:0 0:1 1:1":         {"--topic", "cc.raw"},
		"0:2 1:2":                 {"--kind", "not_found"},
		"1:1 0:2 1:2":             {"--limit", "3"},
		"1:2":                     {"--limit", "1"},
	} {
		if got := positions(args...); got != want {
			t.Errorf("list %q gives %s, want %s", args, got, want)
		}
	}
	out := w.must("deadletter", "list", "--limit", "1", "--kind", "invalid")
	want := "1:1       " + died.UTC().Format("2006-01-02T15:04:05") + ".003Z  cc.raw  invalid  it was [2Jbad  7\n"
	if lines := strings.SplitAfter(out, "\n"); len(lines) != 3 || lines[1] != want {
		t.Errorf("list prints %q, want %q", out, want)
	}
	out = w.must("deadletter", "list", "--json", "--limit", "1")
	for _, part := range []string{`"value":{"n":5}`, `"key":"demo"`, `"original_offset":"7"`, `"size":7`} {
		if !strings.Contains(out, part) {
			t.Errorf("%s is not in %s", part, out)
		}
	}
}

func TestDeadletterRetryOfPositions(t *testing.T) { onEachKafka(t, checkDeadletterRetryOfPositions) }

func checkDeadletterRetryOfPositions(t *testing.T, w *world) {
	cluster := w.openServer()
	bury(t, cluster)
	w.fails(exitFailed, "there is no dead letter at 0:3", "deadletter", "retry", "0:0", "0:3")
	w.fails(exitFailed, "there is no dead letter at 2:0", "deadletter", "retry", "0:0", "2:0")
	w.fails(exitFailed, `the dead letter at 0:2 came from "cdr.raw", not from cc.raw`, "deadletter", "retry", "0:0", "0:2", "--topic", "cc.raw")
	w.expect(cluster, event.TopicRaw)
	if out := w.must("deadletter", "retry", "0:0", "1:1", "0:2"); out != "3 sent back\n" {
		t.Errorf("retry prints %q", out)
	}
	w.expect(cluster, event.TopicRaw, `{"n":0}`, `{"n":3}`)
	w.expect(cluster, event.TopicCDRRaw, `{"n":4}`)
}

func TestDeadletterRetryAllSendsEachOnce(t *testing.T) {
	onEachKafka(t, checkDeadletterRetryAllSendsEachOnce)
}

func checkDeadletterRetryAllSendsEachOnce(t *testing.T, w *world) {
	cluster := w.openServer()
	bury(t, cluster)
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"--topic", "cdr.raw"}, "2 sent back\n"},
		{nil, "4 sent back\n"},
		{nil, "0 sent back\n"},
	} {
		if out := w.must(append([]string{"deadletter", "retry", "--all"}, step.args...)...); out != step.want {
			t.Errorf("retry --all %q prints %q, want %q", step.args, out, step.want)
		}
	}
	produce(t, cluster, dead(6, event.TopicRaw, "invalid"))
	if out := w.must("deadletter", "retry", "--all"); out != "1 sent back\n" {
		t.Errorf("retry --all prints %q", out)
	}
	w.expect(cluster, event.TopicRaw, `{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":6}`)
	w.expect(cluster, event.TopicCDRRaw, `{"n":4}`, `{"n":5}`)
}

func TestDeadletterValuesOfEveryKind(t *testing.T) {
	for value, want := range map[string]string{
		`{"a": 1}`: `"value":{"a":1}`,
		"CC: x\n":  `"value":"CC: x\n"`,
		"\xff":     `"value_base64":"/w=="`,
	} {
		record := dead(0, event.TopicRaw, "invalid")
		record.Value = []byte(value)
		text, err := json.Marshal(letterOf(&record).row(true))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%q is shown as %s, %v", value, text, err)
		}
	}
}
