package normalizer

import (
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
)

func TestRepairsOfPlatformsRecordsAreCounted(t *testing.T) {
	for _, c := range []struct {
		name, topic, format, value string
		want                       event.CDRRepairs
	}{
		{"a valid record", event.TopicCDRRaw, "kazoo.cdr", `{"Call-ID":"k","Timestamp":1795169700}`,
			event.CDRRepairs{}},
		{"Latin-1", event.TopicCDRRaw, "kazoo.cdr", "{\"Call-ID\":\"k\",\"Timestamp\":1795169700,\"From\":\"\xe9\"}",
			event.CDRRepairs{Text: 1}},
		{"NUL", event.TopicCDRRaw, "kazoo.cdr", `{"Call-ID":"k","Timestamp":1795169700,"From":"\u0000","To":"\u0000"}`,
			event.CDRRepairs{Text: 2}},
		{"a long name", event.TopicCDRRaw, "kazoo.cdr",
			`{"Call-ID":"k","Timestamp":1795169700,"From":"` + strings.Repeat("x", 1025) + `"}`,
			event.CDRRepairs{Cut: 1}},
		{"a negative duration", event.TopicCDRRaw, "kazoo.cdr",
			`{"Call-ID":"k","Timestamp":1795169700,"Duration-Seconds":-1}`, event.CDRRepairs{Clock: 1}},
		{"a duration of years", event.TopicCDRRaw, "kazoo.cdr",
			`{"Call-ID":"k","Timestamp":1795169700,"Duration-Seconds":99999999}`, event.CDRRepairs{Clock: 1}},
		{"an event in Latin-1", event.TopicRaw, "asterisk.ami",
			"{\"Event\":\"Newchannel\",\"Uniqueid\":\"1.1\",\"Account-ID\":\"acme\",\"CallerIDName\":\"\xe9\"}",
			event.CDRRepairs{Text: 1}},
	} {
		b := testBatch(c.topic, 3)
		raw := kafka.Record{Topic: c.topic, Partition: 3, Offset: 41, Time: recordedAt(c.topic), Key: []byte("acme"),
			Value:   []byte(c.value),
			Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte(c.format)}}}
		if err := b.fill(t.Context(), []kafka.Record{raw}, 1); err != nil || len(b.events) != 1 {
			t.Fatalf("%s: %d events, %v, dead letters %v", c.name, len(b.events), err, b.deadLetters)
		}
		if b.counts.sourceRepairs != c.want {
			t.Errorf("%s: counted %+v, want %+v", c.name, b.counts.sourceRepairs, c.want)
		}
	}
}
