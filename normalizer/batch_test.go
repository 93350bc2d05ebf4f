package normalizer

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/internal/kafka"
)

func TestABatchIsOneProduceRequest(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	r := rawEvent(3, testRecorded, "acme")
	r.Value = []byte(`{"Account-ID":"acme","x":"` + strings.Repeat("y", 400_000) + `"}`)
	records := []kafka.Record{r, r, r, r}
	if err := b.fill(t.Context(), records, len(records)); err != nil {
		t.Fatal(err)
	}
	if b.rawRecords != 2 || len(b.events) != 2 || b.eventBytes > maxRequestBytes {
		t.Errorf("%d records in %d bytes", b.rawRecords, b.eventBytes)
	}

	huge := r
	huge.Value = []byte(`{"Account-ID":"acme","x":"` + strings.Repeat("y", 1_000_000) + `"}`)
	b.reset(0)

	if err := b.fill(t.Context(), []kafka.Record{huge, r}, 2); err != nil || b.rawRecords != 1 || len(b.events) != 1 {
		t.Errorf("a record larger than a request goes alone: %d taken, %v", b.rawRecords, err)
	}
}

func TestTraceAndSourceTravelOn(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	r := rawEvent(3, testRecorded, "acme")
	r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderSource, Value: []byte("feed \"1\"\n")},
		kafka.Header{Key: event.HeaderTrace, Value: []byte("00-abc")})

	if err := b.fill(t.Context(), []kafka.Record{r}, 1); err != nil {
		t.Fatal(err)
	}

	out := b.events[0]
	if string(out.Header(event.HeaderTrace)) != "00-abc" ||
		!bytes.Contains(out.Value, []byte(`"source":"feed \"1\"\n"`)) {
		t.Errorf("%s %v", out.Value, out.Headers)
	}
}

func TestAFormatOfAnotherTopicIsUnknown(t *testing.T) {
	for topic, name := range map[string]string{event.TopicRaw: "svc.cdr", event.TopicCDRRaw: "svc.cc"} {
		raw := kafka.Record{Topic: topic, Partition: 3, Time: testRecorded, Key: []byte("acme"), Value: []byte(`{}`),
			Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte(name)}}}
		got, err := NormalizeOne(t.Context(), raw, testRecorded, allAccounts{})
		if err != nil || string(got.Header(event.HeaderErrorKind)) != string(UnknownFormat) {
			t.Errorf("%s on %s: %s, %v", name, topic, got.Header(event.HeaderErrorKind), err)
		}
	}
}

func TestTheRulesOfAFeedDecideTheAccount(t *testing.T) {
	for name, c := range map[string]struct{ source, key, want string }{
		"a feed's key comes before the record": {"feed:pbx", "key-account", "key-account"},
		"a feed that knows none":               {"feed:pbx", "", "acme"},
		"a record of HTTP":                     {"apikey:feed:", "key-account", "acme"},
	} {
		t.Run(name, func(t *testing.T) {
			b := testBatch(event.TopicRaw, 3)
			r := rawEvent(3, testRecorded, "acme")
			r.Key = []byte(c.key)
			r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderSource, Value: []byte(c.source)})

			if err := b.fill(t.Context(), []kafka.Record{r}, 1); err != nil {
				t.Fatal(err)
			}
			if len(b.events) != 1 || string(b.events[0].Key) != c.want {
				t.Errorf("%d records, dead %v", len(b.events), b.deadLetters)
			}
		})
	}
}

func TestABatchOfStateIsOneProduceRequest(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	b.partitionState = state.NewPartition()
	long := strings.Repeat("q", 250)

	records := make([]kafka.Record, 3000)
	for i := range records {
		records[i] = eventRecord(event.AgentLogin, fmt.Sprintf(`{"agent_id":"%04d%s"}`, i, long))
		records[i].Time = testRecorded
	}

	taken := 0
	for taken < len(records) {
		b.reset(b.lastID)
		if err := b.fill(t.Context(), records[taken:], len(records)-taken); err != nil || b.rawRecords == 0 {
			t.Fatal(b.rawRecords, err)
		}

		taken += b.rawRecords
		size, n := 0, 0
		b.partitionState.Commit(func(c state.Change) {
			size += len(c.Value.Append(nil)) + len(c.Key.String()) + 32
			n++
		})

		if size > maxRequestBytes || n != b.rawRecords || n != len(b.events) ||
			taken < len(records) && size < maxStateBytes/3 {
			t.Fatalf("%d records changed %d entries of %d bytes", b.rawRecords, n, size)
		}
	}

	if b.partitionState.Size(state.Agent) != len(records) {
		t.Errorf("%d agents", b.partitionState.Size(state.Agent))
	}
}

// What does not become an event leaves no trace in the state.
func TestADeadLetterLeavesTheStateAsItWas(t *testing.T) {
	b := testBatch(event.TopicRaw, 3)
	b.partitionState = state.NewPartition()
	b.maxRecordBytes = 2000

	big := eventRecord(event.AgentLogin, `{"agent_id":"1","x":"`+strings.Repeat("y", 1800)+`"}`)
	small := eventRecord(event.AgentLogin, `{"agent_id":"2"}`)
	for _, r := range []*kafka.Record{&big, &small} {
		r.Time = testRecorded
	}

	if err := b.fill(t.Context(), []kafka.Record{big, small}, 2); err != nil || len(b.deadLetters) != 1 {
		t.Fatal(err, len(b.deadLetters))
	}
	if all := b.partitionState.All(); len(all) != 1 || all[0].ID != "2" {
		t.Errorf("%d entries", len(all))
	}
}
