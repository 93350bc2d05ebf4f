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
