package normalizer

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
)

var update = flag.Bool("update", false, "write the golden files")

// When Kafka got the test records: a day after the captures.
var (
	testRecorded    = time.UnixMilli(1_795_256_000_123)
	testCDRRecorded = time.UnixMilli(1_795_432_000_123)
)

func recordedAt(topic string) time.Time {
	if topic == event.TopicCDRRaw {
		return testCDRRecorded
	}
	return testRecorded
}

// allAccounts but "nobody" has an account.
type allAccounts struct{}

func (allAccounts) Exists(_ context.Context, id string) (bool, error) { return id != "nobody", nil }

func testBatch(topic string, partition int) *batch {
	recoverer := panics.New(prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	b := &batch{
		route: routes[topic], partition: partition, accounts: allAccounts{},
		maxRecordBytes: topics.MaxRecordBytes, panics: recoverer, counts: newCounts(),
	}
	b.reset(0)
	b.now = time.Unix(1_795_256_001, 0)
	return b
}

// outcome of one record: the normalized value, or the dead letter's reason.
func normalizeOne(t *testing.T, topic, format string, value []byte) []byte {
	t.Helper()
	b := testBatch(topic, 3)
	raw := kafka.Record{Topic: topic, Partition: 3, Offset: 41, Time: recordedAt(topic), Key: []byte("key-account"), Value: value}
	if format != "" {
		raw.Headers = []kafka.Header{{Key: event.HeaderFormat, Value: []byte(format)}}
	}
	if err := b.fill(t.Context(), []kafka.Record{raw}, 1); err != nil {
		t.Fatal(err)
	}
	if len(b.events)+len(b.dead) != 1 || b.rawRecords != 1 {
		t.Fatalf("one record became %d events and %d dead letters", len(b.events), len(b.dead))
	}
	if len(b.dead) == 1 {
		d := &b.dead[0]
		if !bytes.Equal(d.Value, value) || string(d.Key) != "key-account" {
			t.Error("a dead letter is the record unchanged")
		}
		return []byte("DEAD " + string(d.Header(event.HeaderErrorKind)) + ": " + string(d.Header(event.HeaderError)))
	}
	out := &b.events[0]
	checkOut(t, topic, out, value)
	return out.Value
}

// checkOut checks what every normalized record promises.
func checkOut(t *testing.T, topic string, out *kafka.Record, value []byte) {
	t.Helper()
	var got struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		AccountID string          `json:"account_id"`
		Data      json.RawMessage `json:"data"`
		Origin    string          `json:"origination_call_id"`
	}
	if err := json.Unmarshal(out.Value, &got); err != nil {
		t.Fatalf("not JSON: %v: %s", err, out.Value)
	}
	if out.Partition != 3 || string(out.Header(event.HeaderPosition)) != "3:41" {
		t.Errorf("partition %d, position %q", out.Partition, out.Header(event.HeaderPosition))
	}
	if string(out.Key) != got.AccountID || string(out.Header(event.HeaderAccount)) != got.AccountID {
		t.Errorf("key %q and header %q are not the account %q", out.Key, out.Header(event.HeaderAccount), got.AccountID)
	}
	if topic != event.TopicRaw {
		if string(out.Header(event.HeaderOrigination)) != got.Origin {
			t.Errorf("header %q, origination call id %q", out.Header(event.HeaderOrigination), got.Origin)
		}
		return
	}
	record := bytes.TrimSpace(value)
	if event.Type(got.Type) == event.QueueCall {
		checkCallData(t, record, got.Data)
	} else if !bytes.Equal(record, got.Data) {
		t.Error("data is not the record's bytes")
	}
	if string(out.Header(event.HeaderType)) != got.Type || !event.Type(got.Type).Known() {
		t.Errorf("type %q, header %q", got.Type, out.Header(event.HeaderType))
	}
	if id, err := event.ParseID(got.ID); err != nil || out.Time.UnixMilli() != id.Milli() {
		t.Errorf("id %q, record time %v", got.ID, out.Time)
	}
}

func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob("../format/*/testdata/*/*.in.jsonl")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no test data: %v", err)
	}
	seen := make(map[string]bool)
	for _, path := range inputs {
		format := filepath.Base(filepath.Dir(path))
		seen[format] = true
		t.Run(format+"/"+strings.TrimSuffix(filepath.Base(path), ".in.jsonl"), func(t *testing.T) {
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			header, topic := format, event.TopicRaw
			if f, ok := registry.Lookup(format); ok {
				topic = f.Topic
			} else {
				header = "" // the folder "recognised"
			}
			var got bytes.Buffer
			for line := range bytes.Lines(in) {
				got.Write(normalizeOne(t, topic, header, bytes.TrimSuffix(line, []byte("\n"))))
				got.WriteByte('\n')
			}
			golden := strings.TrimSuffix(path, ".in.jsonl") + ".want.jsonl"
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			compareLines(t, in, got.Bytes(), want)
		})
	}
	for _, f := range registry.Formats() {
		if !seen[f.Name] {
			t.Errorf("format %q has no golden folder", f.Name)
		}
	}
}

func compareLines(t *testing.T, in, got, want []byte) {
	t.Helper()
	ins, gots, wants := bytes.Split(in, []byte("\n")), bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	if len(gots) != len(wants) {
		t.Fatalf("%d lines, want %d", len(gots), len(wants))
	}
	for i := range gots {
		if !bytes.Equal(gots[i], wants[i]) {
			t.Errorf("line %d: of %.200s\n got %s\nwant %s", i+1, ins[i], gots[i], wants[i])
		}
	}
}
