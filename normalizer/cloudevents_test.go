package normalizer

import (
	"maps"
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// TestCloudEventsAreHeaders: the setting adds headers and changes nothing else.
func TestCloudEventsAreHeaders(t *testing.T) {
	raw := kafka.Record{Topic: event.TopicRaw, Partition: 3, Offset: 41, Time: testRecorded, Key: []byte("demo"),
		Value:   []byte(`{"type":"AGENT_LOGIN","timestamp":1795256000,"data":{"agent_id":"1001"}}`),
		Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("generic")}}}
	normalized := func(cloudEvents bool) (kafka.Record, map[string]string) {
		b := testBatch(event.TopicRaw, 3)
		b.cloudEvents = cloudEvents
		if err := b.fill(t.Context(), []kafka.Record{raw}, 1); err != nil || len(b.events) != 1 {
			t.Fatalf("%d events, %v", len(b.events), err)
		}

		headers := map[string]string{}
		for _, h := range b.events[0].Headers {
			headers[h.Key] = string(h.Value)
		}

		return b.events[0], headers
	}

	plain, want := normalized(false)
	with, got := normalized(true)
	id, err := event.MessageID(plain.Value)
	if err != nil || string(with.Value) != string(plain.Value) || string(with.Key) != string(plain.Key) {
		t.Fatalf("%s became %s, %v", plain.Value, with.Value, err)
	}

	maps.Copy(want, map[string]string{"ce_specversion": "1.0", "ce_id": id.String(), "ce_source": "/accounts/demo",
		"ce_type": "trunkline.agent.login",
		"ce_time": "2026-11-21T10:13:20Z", "content-type": "application/json"})

	if !maps.Equal(got, want) {
		t.Errorf("headers are %v\nwant %v", got, want)
	}
}
