package registry

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"trunkline/event"
	"trunkline/format"
)

// recorded is when Kafka got the test records: after all captures.
var recorded = format.CallTimes{Recorded: 1_795_432_000}

// Formats whose records show it in their keys: the records of their golden
// folders, less those that are broken, are recognised without a header.
func TestRecogniseTellsTheGoldenRecordsApart(t *testing.T) {
	for _, f := range Formats() {
		if f.Internal {
			continue // only its header makes a record ours
		}

		paths, _ := filepath.Glob("../*/testdata/" + f.Name + "/*.in.jsonl")
		total, right := 0, 0
		for _, path := range paths {
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}

			for line := range bytes.Lines(in) {
				if !readable(f, line) {
					continue
				}

				total++
				if found, _, _ := Recognise(f.Topic, line, new(Scratch)); found == f {
					right++
				} else {
					t.Logf("%s: taken for %v: %.120s", f.Name, found, line)
				}
			}
		}

		if total == 0 || right*10 < total*8 {
			t.Errorf("%s: %d of %d recognised", f.Name, right, total)
		}
	}
}

// readable reports whether the format reads a record without an error.
func readable(f *format.Format, record []byte) bool {
	var fields format.Fields
	if f.DecodeCDR != nil {
		_, err := f.ReadCDR(record, &fields, recorded)
		return err == nil
	}
	_, err := f.ReadEvent(record, &fields)
	return err == nil
}

func TestOwnEventsAreNeverRecognised(t *testing.T) {
	record := []byte(`{"event":"call.progress","account_id":"acme","timestamp":1795169706}`)
	if f, _, _ := Recognise(event.TopicRaw, record, new(Scratch)); f != nil {
		t.Errorf("taken for %q", f.Name)
	}
}

func FuzzRecognise(f *testing.F) {
	f.Add([]byte(`{"action":"event","data":{"event_category":"x"}}`))
	f.Fuzz(func(t *testing.T, record []byte) {
		for _, topic := range []string{event.TopicRaw, event.TopicCDRRaw} {
			if f, _, _ := Recognise(topic, record, new(Scratch)); f != nil && !json.Valid(record) {
				t.Fatalf("recognised as %s, but no JSON: %q", f.Name, record)
			}
		}
	})
}
