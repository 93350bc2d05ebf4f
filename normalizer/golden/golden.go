// Package golden tests a source's formats with golden files, in the folder of the source. Only
// tests import it.
//
// testdata/FORMAT/NAME.in.jsonl has raw records of the format FORMAT, one a line, and
// NAME.want.jsonl what becomes of each: the message or row, or "DEAD kind: text". The flag
// -update writes the latter.
package golden

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/kafka"
	"trunkline/normalizer"
)

var update = flag.Bool("update", false, "write the golden files")

// When Kafka got the records: a day after the captures.
var (
	recorded    = time.UnixMilli(1_795_256_000_123)
	cdrRecorded = time.UnixMilli(1_795_432_000_123)
)

// allAccounts says that every account exists, except one.
type allAccounts struct{}

// Exists implements normalizer.Accounts.
func (allAccounts) Exists(_ context.Context, id string) (bool, error) { return id != "nobody", nil }

// Test normalizes the records of all formats of the source in testdata, each with its format's
// header, and compares the results with the golden files.
func Test(t *testing.T, source format.Source) {
	for _, f := range source.Formats {
		files, err := filepath.Glob(filepath.Join("testdata", f.Name, "*.in.jsonl"))
		if err != nil || len(files) == 0 {
			t.Errorf("the format %s has no golden file in testdata/%s (%v)", f.Name, f.Name, err)
		}

		for _, file := range files {
			t.Run(f.Name+"/"+strings.TrimSuffix(filepath.Base(file), ".in.jsonl"), func(t *testing.T) {
				TestFile(t, file, f.Topic, f.Name)
			})
		}
	}
}

// TestFile does as Test with the records of one file. Without a formatName they have no header.
func TestFile(t *testing.T, file, topic, formatName string) {
	in, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var got bytes.Buffer
	for line := range bytes.Lines(in) {
		got.Write(normalize(t, topic, formatName, bytes.TrimSuffix(line, []byte("\n"))))
		got.WriteByte('\n')
	}

	wanted := strings.TrimSuffix(file, ".in.jsonl") + ".want.jsonl"
	if *update {
		if err := os.WriteFile(wanted, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(wanted)
	if err != nil {
		t.Fatal(err)
	}

	compareLines(t, in, got.Bytes(), want)
}

// normalize returns the normalized value, or the dead letter's reason.
func normalize(t *testing.T, topic, formatName string, value []byte) []byte {
	t.Helper()
	raw := kafka.Record{Topic: topic, Partition: 3, Offset: 41, Time: recorded, Key: []byte("key-account"),
		Value: value}

	if topic == event.TopicCDRRaw {
		raw.Time = cdrRecorded
	}
	if formatName != "" {
		raw.Headers = []kafka.Header{{Key: event.HeaderFormat, Value: []byte(formatName)}}
	}

	out, err := normalizer.NormalizeOne(t.Context(), raw, time.Unix(1_795_256_001, 0), allAccounts{})
	if err != nil {
		t.Fatal(err)
	}

	reason := out.Header(event.HeaderError)
	if reason == nil {
		checkRecord(t, topic, &out, value)
		return out.Value
	}
	if !bytes.Equal(out.Value, value) || string(out.Key) != "key-account" {
		t.Error("a dead letter is the record unchanged")
	}

	return []byte("DEAD " + string(out.Header(event.HeaderErrorKind)) + ": " + string(reason))
}

// checkRecord checks what holds for the normalized record of every format.
func checkRecord(t *testing.T, topic string, out *kafka.Record, value []byte) {
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

	if topic == event.TopicCDRRaw {
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

	id, err := event.ParseID(got.ID)
	if err != nil || out.Time.UnixMilli() != id.Milli() {
		t.Errorf("id %q, record time %v", got.ID, out.Time)
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

// checkCallData checks that the data of a call event begins with the record's own members,
// byte for byte, and that each member has one value.
func checkCallData(t *testing.T, record, data []byte) {
	t.Helper()
	if !bytes.HasPrefix(data, record[:len(record)-1]) {
		t.Errorf("data does not begin with the record: %s", data)
	}

	names := map[string]int{}
	for _, name := range memberNames(t, data) {
		names[name]++
	}

	own := map[string]int{}
	for _, name := range memberNames(t, record) {
		own[name]++
	}

	for _, name := range []string{"Account-ID", "Queue-ID", "Type", "CDR", "customer_info", "history"} {
		want := max(own[name], 1)
		if names[name] != want {
			t.Errorf("%d members %s, want %d", names[name], name, want)
		}
	}
}

// memberNames returns the names of an object's members in order.
func memberNames(t *testing.T, object []byte) (names []string) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	_, err := d.Token()
	if err != nil {
		t.Fatal(err)
	}

	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}

		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}

		names = append(names, name.(string))
	}

	return names
}
