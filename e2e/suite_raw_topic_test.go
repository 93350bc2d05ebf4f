package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/kafka"
)

// produce produces records to the raw topic without Trunkline's producer.
func (c *cluster) produce(t testing.TB, records ...kafka.Record) {
	t.Helper()
	producer := c.kafka(t).NewProducer(kafka.ProducerConfig{})
	for i := range records {
		records[i].Topic, records[i].Partition = "cc.raw", kafka.AnyPartition
	}
	err := producer.Produce(t.Context(), records...)
	if err := errors.Join(err, producer.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) testRawTopic(t *testing.T) {
	w := c.account(t, "raw", "demo")
	n := c.otherNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})
	values := []struct{ value, format, kind string }{
		{`{"Account-ID":"raw","Type":"svc_cc_queue_on_call_event","Queue-ID":"q"}`, "svc.cc",
			"svc_cc_queue_on_call_event"},
		{`{"type":"AGENT_LOGIN","account_id":"raw","data":{"agent":"a"}}`, "generic", "AGENT_LOGIN"},
		{`{"Event-Name":"CUSTOM","Core-UUID":"c","Event-Subclass":"callcenter::info","CC-Action":"agent-offering"}`,
			"freeswitch.callcenter", "svc_cc_queue_on_call_event"},
		{`{"Event-Name":"CHANNEL_CREATE","Core-UUID":"c","Unique-ID":"u"}`, "freeswitch.event", "AGENT_CUSTOM_EVENT"},
		{`{"Event-Category":"call_event","Event-Name":"CHANNEL_ANSWER","Call-ID":"c","Custom-Channel-Vars":{"Account-ID":"raw"}}`,
			"kazoo.call_event", "AGENT_CUSTOM_EVENT"},
		{`{"account_id":"raw","what":"ever"}`, "unknown", "AGENT_CUSTOM_EVENT"},
	}
	var records []kafka.Record

	for _, v := range values {
		records = append(records, kafka.Record{Key: []byte("raw"), Value: []byte(v.value)})
	}

	c.produce(t, records...)
	got := s.awaitCount(t, len(values))
	for i, v := range values {
		e := got[i]
		if !hasRecord(e.Data, v.value) || e.AccountID != "raw" || e.Metadata.OriginalFormat != v.format ||
			e.Metadata.Source != "kafka" {
			t.Errorf("%s\nbecame %s", v.value, s.texts()[i])
		}
		if e.Type != v.kind {
			t.Errorf("%s became %s, want %s", v.value, e.Type, v.kind)
		}
	}
}

// testKcat produces records with kcat.
func (c *cluster) testKcat(t *testing.T) {
	path, err := exec.LookPath("kcat")
	if err != nil {
		skipMissingTool(t, "kcat is not installed")
	}

	w := c.account(t, "kcat", "demo")
	n := c.otherNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})
	want := readFile(t, captured["callcenter"])
	cmd := exec.CommandContext(t.Context(), path, "-P", "-b", c.brokers[0], "-t", c.prefix+"cc.raw", "-k", "kcat",
		"-X", "acks=all", "-X", "message.max.bytes=1000000")
	cmd.Stdin = strings.NewReader(want)

	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kcat: %v: %s", err, output)
	}

	// kcat has another partitioner, but maps each key to one partition.
	got := s.awaitCount(t, len(lines(want)))
	for i, line := range lines(want) {
		if !hasRecord(got[i].Data, line) {
			t.Fatalf("event %d is\n%s\nwant\n%s", i, got[i].Data, line)
		}
	}
}

// skipMissingTool skips a test that needs a missing program, with a message; in CI it fails the test.
func skipMissingTool(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(what)
	}
	fmt.Fprintf(os.Stderr, "e2e: SKIPPING %s: %s\n", t.Name(), what)
	t.Skip(what)
}

// letter is a line of `deadletter list --json`.
type letter struct {
	Position string            `json:"position"`
	Topic    string            `json:"topic"`
	Kind     string            `json:"kind"`
	Reason   string            `json:"reason"`
	Key      string            `json:"key"`
	Headers  map[string]string `json:"headers"`
	Value    json.RawMessage   `json:"value"`
	Base64   string            `json:"value_base64"`
}

func (c *cluster) letters(t testing.TB) []letter {
	t.Helper()
	var all []letter
	for _, line := range lines(c.ingest.cli(t, "deadletter", "list", "--json", "--limit", "1000")) {
		if line == "" {
			continue
		}

		var l letter
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}

		all = append(all, l)
	}

	return all
}

// awaitLetter waits for a dead letter with that value.
func (c *cluster) awaitLetter(t testing.TB, value string) letter {
	t.Helper()
	var found letter
	eventually(t, "a dead letter", func() error {
		all := c.letters(t)
		at := slices.IndexFunc(all, func(l letter) bool { return string(l.Value) == value })
		if at < 0 {
			return fmt.Errorf("not among %d", len(all))
		}

		found = all[at]
		return nil
	})

	return found
}

func (c *cluster) testDeadLetters(t *testing.T) {
	const value = `{"Account-ID":"late","Type":"AGENT_LOGIN","n":1}`
	c.produce(t, kafka.Record{Key: []byte("late"), Value: []byte(value),
		Headers: []kafka.Header{{Key: "format", Value: []byte("svc.cc")}}})
	l := c.awaitLetter(t, value)
	if l.Kind != "unknown_account" || l.Topic != "cc.raw" || l.Key != "late" || l.Headers["format"] != "svc.cc" ||
		l.Reason == "" {
		t.Errorf("dead letter %+v", l)
	}

	w := c.account(t, "late", "demo")
	n := c.otherNode()
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, w)})

	if printed := c.ingest.cli(t, "deadletter", "retry", l.Position); printed != "1 sent back" {
		t.Errorf("deadletter retry prints %q", printed)
	}

	got := s.awaitCount(t, 1)[0]
	if string(got.Data) != value || got.Type != "AGENT_LOGIN" || got.AccountID != "late" {
		t.Errorf("the retried event is %s", s.texts()[0])
	}

	// A record of an account that was just created must not become a dead letter.
	made := time.Now()
	c.ingest.cli(t, "account", "create", "fresh", "--id", "fresh", "--domain", "fresh.test", "--parent", "late")
	c.produce(t, kafka.Record{Key: []byte("fresh"), Value: []byte(record("fresh", 2))})

	if e := s.awaitCount(t, 2)[1]; e.AccountID != "fresh" {
		t.Errorf("got %+v, %v after its account was made", e, time.Since(made))
	}
}
