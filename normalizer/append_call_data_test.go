package normalizer

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

// storyFiles are captured and written stories of calls in queues, by their name in testdata/stories.
var storyFiles = map[string]string{
	"freeswitch-answered":               "../format/freeswitch/testdata/freeswitch.callcenter/captured.in.jsonl",
	"freeswitch-no-answer":              "../format/freeswitch/testdata/freeswitch.callcenter/no-answer.in.jsonl",
	"freeswitch-abandoned":              "../format/freeswitch/testdata/freeswitch.callcenter/abandoned.in.jsonl",
	"freeswitch-transfer-to-queue":      "../stats/testdata/stories/freeswitch-transfer-to-queue.ndjson.gz",
	"freeswitch-three-callers":          "../stats/testdata/stories/freeswitch-three-callers-one-rings.ndjson.gz",
	"asterisk-answered":                 "../format/asterisk/testdata/asterisk.ami/queue-answered.in.jsonl",
	"asterisk-no-answer":                "../format/asterisk/testdata/asterisk.ami/queue-no-answer.in.jsonl",
	"asterisk-abandoned":                "../format/asterisk/testdata/asterisk.ami/queue-abandoned.in.jsonl",
	"asterisk-timeout":                  "../format/asterisk/testdata/asterisk.ami/queue-timeout.in.jsonl",
	"asterisk-transfer-to-same-queue":   "../stats/testdata/stories/asterisk-transfer-to-same-queue.json",
	"kazoo-answered":                    "../format/kazoo/testdata/kazoo.acdc/answered.in.jsonl",
	"kazoo-abandoned":                   "../format/kazoo/testdata/kazoo.acdc/abandoned.in.jsonl",
	"kazoo-three-misses":                "../stats/testdata/stories/kazoo-three-misses.json",
	"svc-and-generic-with-less-members": "testdata/stories/less-members.in.jsonl",
}

// specified are the members of a call event's data.
type specified struct {
	Account  string          `json:"Account-ID"`
	Queue    string          `json:"Queue-ID"`
	Type     string          `json:"Type"`
	CDR      json.RawMessage `json:"CDR"`
	Customer json.RawMessage `json:"customer_info"`
	History  []historyStep   `json:"history"`
}

type historyStep struct {
	Type  string `json:"type"`
	Ext   string `json:"ext"`
	Event string `json:"event"`
	Email string `json:"email"`
	First string `json:"first_name"`
	Last  string `json:"last_name"`
}

// readRecords reads a JSON array, or lines, compressed or not.
func readRecords(t *testing.T, file string) (records []json.RawMessage) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil && strings.HasSuffix(file, ".gz") {
		var r *gzip.Reader
		r, err = gzip.NewReader(bytes.NewReader(text))
		if err == nil {
			text, err = io.ReadAll(r)
		}
	}
	if err == nil && strings.HasSuffix(file, ".json") {
		err = json.Unmarshal(text, &records)
	} else {
		for line := range bytes.Lines(text) {
			records = append(records, bytes.TrimSpace(line))
		}
	}
	if err != nil {
		t.Fatal(err)
	}

	return records
}

// tellStory normalizes records one after another, a second apart, with the state between them,
// and returns the messages; a dead letter has none.
func tellStory(t *testing.T, records []json.RawMessage) (messages [][]byte) {
	t.Helper()
	b := testBatch(event.TopicRaw, 3)
	b.partitionState = state.NewPartition()

	for i, record := range records {
		raw := kafka.Record{Topic: event.TopicRaw, Partition: 3, Offset: int64(i),
			Time: testRecorded.Add(time.Duration(i) * time.Second),
			Key:  []byte("acme"), Value: record}
		b.partitionState.Commit(func(state.Change) {})
		b.reset(b.lastID)
		b.now = time.Unix(1_795_256_001, 0)

		if err := b.fill(t.Context(), []kafka.Record{raw}, 1); err != nil || len(b.events)+len(b.deadLetters) != 1 {
			t.Fatalf("record %d: %v, %d events, %d dead letters", i, err, len(b.events), len(b.deadLetters))
		}
		if len(b.events) == 0 {
			continue
		}

		messages = append(messages, bytes.Clone(b.events[0].Value))
	}

	return messages
}

var update = flag.Bool("update", false, "write the golden files of the stories")

// What a client that knows the specification alone reads of the stories of all platforms:
// testdata/stories has the specified members of every call event, and api/described_schemas_test.go
// validates them.
func TestEveryPlatformTellsTheSpecifiedCallEvent(t *testing.T) {
	for name, file := range storyFiles {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			for i, m := range tellStory(t, readRecords(t, file)) {
				var message struct {
					Type     event.Type
					Data     specified
					Metadata struct{ Facts event.Facts }
				}
				if err := json.Unmarshal(m, &message); err != nil {
					t.Fatal(err)
				}
				if message.Type != event.QueueCall {
					continue
				}

				d := &message.Data
				if n := len(d.History); n == 0 || n > state.MaxSteps ||
					d.History[n-1].Event != string(message.Metadata.Facts.Name) {
					t.Errorf("record %d: the history does not end with the event: %+v", i, d.History)
				}

				line, err := json.Marshal(d)
				if err != nil {
					t.Fatal(err)
				}

				got.Write(append(line, '\n'))
			}

			compareGolden(t, "testdata/stories/"+name+".want.jsonl", got.Bytes())
		})
	}
}

// compareGolden compares with a golden file, or writes it.
func compareGolden(t *testing.T, golden string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}

	if !bytes.Equal(got, want) {
		t.Errorf("%s: got\n%s\nwant\n%s", golden, got, want)
	}
}

// The source's own members stay as they are, and none is written a second time.
func TestTheSourcesOwnMembersStay(t *testing.T) {
	for name, c := range map[string]struct{ record, want string }{
		"spaces and a member that is there": {
			"{ \"Type\" : \"svc_cc_queue_on_call_event\", \"CDR\":{\"Call-ID\":\"c\",\"Event\":\"entered\",\"Conference-ID\":\"x\"} , \"history\":null\n} ",
			"{ \"Type\" : \"svc_cc_queue_on_call_event\", \"CDR\":{\"Call-ID\":\"c\",\"Event\":\"entered\",\"Conference-ID\":\"x\"} , \"history\":null\n" +
				`,"Account-ID":"acme","Queue-ID":"","customer_info":{"customer_callerid_name":"","customer_callerid_number":"","customer_uuid":"c"}}`,
		},
		"an escaped name": {
			`{"T\u0079pe":"svc_cc_queue_on_call_event","Account-ID":"acme","Queue-ID":"q","customer_info":{},"CDR":{},"\u0068istory":[]}`,
			`{"T\u0079pe":"svc_cc_queue_on_call_event","Account-ID":"acme","Queue-ID":"q","customer_info":{},"CDR":{},"\u0068istory":[]}`,
		},
		"another spelling, and an envelope": {
			`{"action":"event","name":"x","data":{"event_category":"member","event_name":"call","Account-ID":"acme","Queue-ID":"q","call":{"call_id":"c","caller_id_name":"J\u00f6rg"},"Conference-Channel-Vars":{"Member-ID":17},"Conference-ID":"k"}}`,
			`{"action":"event","name":"x","data":{"event_category":"member","event_name":"call","Account-ID":"acme","Queue-ID":"q","call":{"call_id":"c","caller_id_name":"J\u00f6rg"},"Conference-Channel-Vars":{"Member-ID":17},"Conference-ID":"k"}` +
				`,"Account-ID":"acme","Queue-ID":"q","Type":"svc_cc_queue_on_call_event","CDR":{"channel":{"Conference-Channel-Vars":{"Member-ID":17},"Custom-Channel-Vars":{"Account-ID":"acme","Bridge-ID":"c"}},"Call-ID":"c","Conference-ID":"k","Event":"queue.call_entered"},` +
				`"customer_info":{"customer_callerid_name":"Jörg","customer_callerid_number":"","customer_uuid":"c"},"history":[{"type":"queue","ext":"q","event":"queue.call_entered","email":"","first_name":"","last_name":""}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			messages := tellStory(t, []json.RawMessage{json.RawMessage(c.record)})
			if !bytes.Contains(messages[0], []byte(`,"data":`+c.want+`,"metadata":`)) {
				t.Errorf("got %s\nwant %s", messages[0], c.want)
			}
		})
	}
}
