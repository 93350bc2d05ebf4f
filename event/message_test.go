package event

import (
	"encoding/json"
	"testing"
)

func TestMessageIsJSONWithDataByteForByte(t *testing.T) {
	const data = `{"a" : 1.0,  "b":"é\u00e9", "a":2}`
	m := Message{
		ID: NextID(0, 1_795_000_000_123, 5), Type: QueueCall, AccountID: `ac"c`, Timestamp: 12,
		Data:     json.RawMessage(data),
		Metadata: Metadata{Source: "k\n1", OriginalFormat: "svc.cc", ProcessedAt: 13, QueueID: "q"},
	}
	var got struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		AccountID string          `json:"account_id"`
		Timestamp int64           `json:"timestamp"`
		Data      json.RawMessage `json:"data"`
		Metadata  struct {
			Source         string `json:"source"`
			OriginalFormat string `json:"original_format"`
			ProcessedAt    int64  `json:"processed_at"`
			QueueID        string `json:"queue_id"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(m.Append(nil), &got); err != nil {
		t.Fatal(err)
	}

	if string(got.Data) != data {
		t.Errorf("data came out as %s", got.Data)
	}
	if got.ID != m.ID.String() || got.Type != string(m.Type) || got.AccountID != m.AccountID ||
		got.Timestamp != 12 || got.Metadata.Source != "k\n1" || got.Metadata.QueueID != "q" {
		t.Errorf("got %+v", got)
	}
}

func TestFactsOfAnEncodedMessageAreRead(t *testing.T) {
	facts := Facts{Name: NameQueueCallAnswered, AgentID: `,"facts":{"name":"x"}`, Caller: `,"metadata":{`,
		State: Talking, WaitMS: MillisOf(3)}
	m := Message{ID: 1_795_169_700_000_000_000, Type: Custom, AccountID: `a","timestamp":1`, Timestamp: 1_795_169_700,
		Data:     []byte(`{"x":"y","timestamp":5,"metadata":{"facts":{"name":"agent.login"}}}`),
		Metadata: Metadata{Source: `,"facts":{}`, OriginalFormat: "generic", QueueID: "q", Facts: facts}}
	message := m.Append(nil)
	got, ok, err := MessageFacts(message)
	if err != nil || !ok || got.Timestamp != m.Timestamp || got.Metadata.Facts != facts ||
		got.Metadata.Source != m.Metadata.Source {
		t.Errorf("%s is read as %+v, %v, %v", message, got, ok, err)
	}

	before := []byte(
		`{"id":"cc_evt_1795169700000000000","type":"t","account_id":"a","timestamp":7,"data":{"facts":{"name":"other"}},"metadata":{"source":"s","original_format":"generic","processed_at":1}}`)
	if got, ok, err := MessageFacts(before); ok || err != nil || got.Timestamp != 7 || got.Metadata.Source != "s" {
		t.Errorf("a message without facts: %+v, %v, %v", got, ok, err)
	}

	for _, bad := range []string{"", "of another writer", `{"id":"x","timestamp":x,"data":1}`,
		string(message[:len(message)-1])} {
		if _, ok, err := MessageFacts([]byte(bad)); ok || err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
