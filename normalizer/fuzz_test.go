package normalizer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"trunkline/event"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
)

// Every record becomes one message that holds its bytes, one row,
// or one dead letter; and nothing panics.
func FuzzNormalize(f *testing.F) {
	paths, _ := filepath.Glob("../format/*/testdata/*/*.in.jsonl")
	for _, path := range paths {
		in, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}

		for line := range bytes.Lines(in) {
			if len(line) < 2000 {
				f.Add(filepath.Base(filepath.Dir(path)), line)
			}
		}
	}

	f.Fuzz(func(t *testing.T, format string, value []byte) {
		for topic := range conversions {
			known, ok := registry.Lookup(format)
			if ok && known.Topic != topic {
				continue
			}

			var header []kafka.Header
			if ok {
				header = []kafka.Header{{Key: event.HeaderFormat, Value: []byte(format)}}
			}

			b := testBatch(topic, 3)
			raw := kafka.Record{Topic: topic, Partition: 3, Offset: 41, Time: recordedAt(topic), Key: []byte("k"),
				Value: value, Headers: header}
			if err := b.fill(t.Context(), []kafka.Record{raw}, 1); err != nil {
				t.Fatal(err)
			}
			if len(b.events)+len(b.deadLetters) != 1 {
				t.Fatalf("%d events, %d dead letters", len(b.events), len(b.deadLetters))
			}

			if len(b.deadLetters) == 1 {
				if string(b.deadLetters[0].Header(event.HeaderErrorKind)) == string(Internal) {
					t.Fatal("it panicked")
				}
				continue
			}

			checkFuzzed(t, topic, &b.events[0], value)
		}
	})
}

func checkFuzzed(t *testing.T, topic string, out *kafka.Record, value []byte) {
	t.Helper()
	if !json.Valid(out.Value) || string(out.Key) != string(out.Header(event.HeaderAccount)) {
		t.Fatalf("%q is no message: %s", value, out.Value)
	}

	if topic == event.TopicRaw {
		own := value
		if string(out.Header(event.HeaderType)) == string(event.QueueCall) { // the specified members follow
			own = value[:bytes.LastIndexByte(value, '}')]
		}
		if !bytes.Contains(out.Value, append([]byte(`,"data":`), own...)) {
			t.Fatalf("data is not the record's bytes: %s", out.Value)
		}

		return
	}

	var row event.CDR
	if err := json.Unmarshal(out.Value, &row); err != nil || row.CallID == "" || row.InteractionID == "" ||
		row.ID == "" || row.Timestamp < 946_684_800 {
		t.Fatalf("%q became no row: %s (%v)", value, out.Value, err)
	}
}
