package deadletter

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"trunkline/cmd/internal/cli"
	"trunkline/cmd/internal/clitest"
	"trunkline/cmd/trunkline/directory"
	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/ingest/deadletter"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice"
	"trunkline/settings"
)

func newRunner(t *testing.T) *clitest.Runner {
	return clitest.New(t, "trunkline", func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p), directory.AccountCommand(p)}
	})
}

// onEachKafka runs a test beside a server with an embedded broker, and on a
// real Kafka.
func onEachKafka(t *testing.T, test func(t *testing.T, w *clitest.Runner)) {
	t.Run("embedded", func(t *testing.T) { test(t, newRunner(t)) })
	t.Run("kafka", func(t *testing.T) {
		w := newRunner(t)
		brokers := testservice.Kafka(t)
		w.Environ = []string{
			"TRUNKLINE_KAFKA_BROKERS=" + strings.Join(brokers, ","),
			"TRUNKLINE_KAFKA_TOPIC_PREFIX=" + testservice.Prefix(t),
		}
		test(t, w)
	})
}

// firstDied is the time of the first dead letter, within Kafka's retention.
var firstDied = time.Now().Add(-time.Hour).Truncate(time.Second)

func deadRecord(n int, topic, kind string) kafka.Record {
	return kafka.Record{
		Topic: event.TopicDead, Partition: n % 2, Time: firstDied.Add(time.Duration(n) * time.Millisecond),
		Key: []byte("demo"), Value: []byte(`{"n":` + strconv.Itoa(n) + `}`),
		Headers: []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte("svc.cc")}, {Key: event.HeaderSource, Value: []byte("pbx")},
			{Key: event.HeaderErrorKind, Value: []byte(kind)},
			{Key: event.HeaderError, Value: []byte("it was\x1b[2Jbad")},
			{Key: event.HeaderOrigTopic, Value: []byte(topic)},
			{Key: event.HeaderOrigPartition, Value: []byte("1")}, {Key: event.HeaderOrigOffset, Value: []byte("7")},
		},
	}
}

// addDeadLetters creates the topics and some dead letters: 0, 2, 4 in partition 0, and 1, 3, 5 in partition
// 1; 4 and 5 are call records.
func addDeadLetters(t *testing.T, cluster *kafka.Cluster) {
	t.Helper()
	if err := cluster.EnsureTopics(t.Context(), topics.All(2)); err != nil {
		t.Fatal(err)
	}

	var records []kafka.Record
	for n := range 4 {
		records = append(records, deadRecord(n, event.TopicRaw, "invalid"))
	}

	records = append(records, deadRecord(4, event.TopicCDRRaw, "not_found"),
		deadRecord(5, event.TopicCDRRaw, "not_found"))
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

// values returns the values of a topic, sorted.
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

func expect(w *clitest.Runner, cluster *kafka.Cluster, topic string, want ...string) {
	w.T.Helper()
	if got := values(w.T, cluster, topic); !slices.Equal(got, want) {
		w.T.Errorf("%s holds %q, want %q", topic, got, want)
	}
}

func TestDeadlettersBeforeThereAreTopics(t *testing.T) {
	w := newRunner(t)
	w.MustFail(cli.ExitFailed, "data_dir "+w.Dir+" has no embedded broker", "deadletter", "list")
	w.OpenKafka()

	if out := w.MustRun("deadletter", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("deadletter list prints %q", out)
	}
	if out := w.MustRun("deadletter", "retry", "--all"); out != "0 sent back\n" {
		t.Errorf("deadletter retry prints %q", out)
	}

	w.MustFail(cli.ExitFailed, "there is no dead letter at 0:0", "deadletter", "retry", "0:0")
}

func TestDeadletterList(t *testing.T) { onEachKafka(t, checkDeadletterList) }

func checkDeadletterList(t *testing.T, w *clitest.Runner) {
	addDeadLetters(t, w.OpenKafka())
	positions := func(args ...string) string {
		t.Helper()
		var found []string
		for line := range strings.Lines(w.MustRun(append([]string{"deadletter", "list", "--json"}, args...)...)) {
			var row deadletter.Row
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

	out := w.MustRun("deadletter", "list", "--limit", "1", "--kind", "invalid")
	want := "1:1       " + firstDied.UTC().Format("2006-01-02T15:04:05") + ".003Z  cc.raw  invalid  it was [2Jbad  7\n"
	if lines := strings.SplitAfter(out, "\n"); len(lines) != 3 || lines[1] != want {
		t.Errorf("list prints %q, want %q", out, want)
	}

	out = w.MustRun("deadletter", "list", "--json", "--limit", "1")
	for _, part := range []string{`"value":{"n":5}`, `"key":"demo"`, `"original_offset":"7"`, `"size":7`} {
		if !strings.Contains(out, part) {
			t.Errorf("%s is not in %s", part, out)
		}
	}
}

func TestDeadletterRetryOfPositions(t *testing.T) { onEachKafka(t, checkDeadletterRetryOfPositions) }

func checkDeadletterRetryOfPositions(t *testing.T, w *clitest.Runner) {
	cluster := w.OpenKafka()
	addDeadLetters(t, cluster)
	w.MustFail(cli.ExitFailed, "there is no dead letter at 0:3", "deadletter", "retry", "0:0", "0:3")
	w.MustFail(cli.ExitFailed, "there is no dead letter at 2:0", "deadletter", "retry", "0:0", "2:0")
	w.MustFail(cli.ExitFailed, `the dead letter at 0:2 came from "cdr.raw", not from cc.raw`, "deadletter", "retry",
		"0:0", "0:2", "--topic", "cc.raw")
	expect(w, cluster, event.TopicRaw)

	if out := w.MustRun("deadletter", "retry", "0:0", "1:1", "0:2"); out != "3 sent back\n" {
		t.Errorf("retry prints %q", out)
	}

	expect(w, cluster, event.TopicRaw, `{"n":0}`, `{"n":3}`)
	expect(w, cluster, event.TopicCDRRaw, `{"n":4}`)
}

func TestDeadletterRetryAllSendsEachOnce(t *testing.T) {
	onEachKafka(t, checkDeadletterRetryAllSendsEachOnce)
}

func checkDeadletterRetryAllSendsEachOnce(t *testing.T, w *clitest.Runner) {
	cluster := w.OpenKafka()
	addDeadLetters(t, cluster)
	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"--topic", "cdr.raw"}, "2 sent back\n"},
		{nil, "4 sent back\n"},
		{nil, "0 sent back\n"},
	} {
		if out := w.MustRun(append([]string{"deadletter", "retry", "--all"}, step.args...)...); out != step.want {
			t.Errorf("retry --all %q prints %q, want %q", step.args, out, step.want)
		}
	}

	if out := w.MustRun("deadletter", "list"); strings.Count(out, "\n") != 1 {
		t.Errorf("after a retry of all the list is %q", out)
	}

	produce(t, cluster, deadRecord(6, event.TopicRaw, "invalid"))
	if out := w.MustRun("deadletter", "retry", "--all"); out != "1 sent back\n" {
		t.Errorf("retry --all prints %q", out)
	}

	expect(w, cluster, event.TopicRaw, `{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":6}`)
	expect(w, cluster, event.TopicCDRRaw, `{"n":4}`, `{"n":5}`)
}

func TestDeadletterDiscard(t *testing.T) { onEachKafka(t, checkDeadletterDiscard) }

// A discarded letter is not listed and not sent back with the others, but by its position.
func checkDeadletterDiscard(t *testing.T, w *clitest.Runner) {
	cluster := w.OpenKafka()
	addDeadLetters(t, cluster)
	w.MustFail(cli.ExitFailed, "there is no dead letter at 0:3", "deadletter", "discard", "0:0", "0:3")
	w.MustFail(cli.ExitUsage, "--kind goes with --all", "deadletter", "discard", "0:0", "--kind", "invalid")
	w.MustFail(cli.ExitUsage, "name positions", "deadletter", "discard")

	for _, step := range []struct {
		args []string
		want string
	}{
		{[]string{"0:0"}, "1 discarded\n"},
		{[]string{"--all", "--topic", "cdr.raw", "--kind", "invalid"}, "0 discarded\n"},
		{[]string{"--all", "--kind", "not_found"}, "2 discarded\n"},
	} {
		if out := w.MustRun(append([]string{"deadletter", "discard"}, step.args...)...); out != step.want {
			t.Errorf("discard %q prints %q, want %q", step.args, out, step.want)
		}
	}

	w.MustFail(cli.ExitFailed, "there is no dead letter at 0:3", "deadletter", "retry", "0:3") // a settlement is none
	if out := w.MustRun("deadletter", "list"); strings.Count(out, "\n") != 4 || strings.Contains(out, "not_found") {
		t.Errorf("the list is\n%s", out)
	}
	if out := w.MustRun("deadletter", "retry", "--all"); out != "3 sent back\n" {
		t.Errorf("retry --all prints %q", out)
	}
	if out := w.MustRun("deadletter", "retry", "0:0"); out != "1 sent back\n" {
		t.Errorf("retry prints %q", out)
	}

	expect(w, cluster, event.TopicRaw, `{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`)
	expect(w, cluster, event.TopicCDRRaw)
}

func TestDeadletterValuesOfEveryKind(t *testing.T) {
	w := newRunner(t)
	cluster := w.OpenKafka()
	addDeadLetters(t, cluster)

	for value, want := range map[string]string{
		`{"a": 1}`: `"value":{"a":1}`,
		"CC: x\n":  `"value":"CC: x\n"`,
		"\xff":     `"value_base64":"/w=="`,
	} {
		record := deadRecord(0, event.TopicRaw, "kind of "+value)
		record.Value = []byte(value)
		produce(t, cluster, record)
		text := w.MustRun("deadletter", "list", "--json", "--kind", "kind of "+value)
		if !strings.Contains(text, want) {
			t.Errorf("%q is shown as %s", value, text)
		}
	}
}

// An event of a feed whose account does not exist yet is delivered by a retry once it does.
func TestARetryDeliversAFeedsEventOnceItsAccountExists(t *testing.T) {
	w, brokers, prefix := newRunner(t), testservice.Kafka(t), testservice.Prefix(t)
	w.Environ = []string{"TRUNKLINE_KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"TRUNKLINE_KAFKA_TOPIC_PREFIX=" + prefix}
	w.Serve(func(s *settings.Settings) {
		s.Kafka.Brokers, s.Kafka.TopicPrefix, s.Kafka.Partitions = brokers, prefix, 2
	})
	cluster := w.OpenKafka()
	produce(t, cluster,
		kafka.Record{Topic: event.TopicRaw, Partition: kafka.AnyPartition, Value: []byte(`{"Type":"AGENT_LOGIN"}`),
			Headers: []kafka.Header{
				{Key: event.HeaderFormat, Value: []byte("svc.cc")},
				{Key: event.HeaderSource, Value: []byte("feed:pbx")},
				{Key: event.HeaderAccountNames, Value: []byte("support\nacme.example")},
			}})

	letters := func() (kinds []string) {
		for line := range strings.Lines(w.MustRun("deadletter", "list", "--json")) {
			var row deadletter.Row
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			kinds = append(kinds, row.Position+" "+row.Kind+" "+row.Headers[event.HeaderAccountNames])
		}

		return kinds
	}

	await := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not within a minute: %s; dead letters %q", what, letters())
			}
		}
	}

	const letter = " unknown_account support\nacme.example"
	// one waits for a single letter, at another position than except, and returns its position.
	one := func(except string) (position string) {
		t.Helper()
		await("the dead letter", func() bool {
			found := letters()
			if len(found) != 1 || !strings.HasSuffix(found[0], letter) || found[0] == except {
				return false
			}
			position = found[0]
			return true
		})

		return position
	}

	first := one("")
	if out := w.MustRun("deadletter", "retry", "--all"); out != "1 sent back\n" {
		t.Errorf("retry prints %q", out)
	}

	one(first) // it is one again, with its names

	w.MustRun("account", "create", "Acme", "--domain", "acme.example", "--id", "acme")
	if out := w.MustRun("deadletter", "retry", "--all"); out != "1 sent back\n" {
		t.Errorf("retry prints %q", out)
	}

	await("it is delivered", func() bool {
		partitions, err := cluster.Partitions(t.Context(), event.TopicEvents)
		for n := 0; err == nil && n < partitions; n++ {
			var last *kafka.Record
			last, err = cluster.LastRecord(t.Context(), event.TopicEvents, n)
			if last != nil && string(last.Header(event.HeaderAccount)) == "acme" {
				return true
			}
		}

		if err != nil {
			t.Fatal(err)
		}

		return false
	})
}
