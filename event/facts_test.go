package event

import (
	"encoding/json"
	"testing"
)

func TestFactsAreWrittenAsTheirJSONTagsSay(t *testing.T) {
	for _, f := range []Facts{
		{Name: NameOther},
		{Name: NameQueueCallAnswered, AgentID: "1002@pbx.example.com", AgentName: "Ünal \"U\"", QueueID: "q", CallID: "c", InteractionID: "i",
			OriginationCallID: "o", Caller: "+49301", Callee: "1002", State: Talking, Reason: "r", PreviousState: Ringing,
			PreviousSince: 1, WaitMS: MillisOf(0), TalkMS: MillisOf(7), TimestampMS: 9},
	} {
		want, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		got := f.Append(nil)
		if !jsonEqual(t, got, want) {
			t.Errorf("Append = %s, its tags say %s", got, want)
		}
		var back Facts
		if err := json.Unmarshal(got, &back); err != nil || back != f {
			t.Errorf("read back %+v, %v; want %+v", back, err, f)
		}
	}
	if got := string((&Facts{}).Append(nil)); got != `{"name":"other"}` {
		t.Errorf("no facts are written as %s", got)
	}
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return string(must(json.Marshal(x))) == string(must(json.Marshal(y)))
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestFactsOfAnEncodedMessageAreRead(t *testing.T) {
	facts := Facts{Name: NameQueueCallAnswered, AgentID: `,"facts":{"name":"x"}`, Caller: `,"metadata":{`, State: Talking, WaitMS: MillisOf(3)}
	m := Message{ID: 1_795_169_700_000_000_000, Type: Custom, AccountID: `a","timestamp":1`, Timestamp: 1_795_169_700,
		Data:     []byte(`{"x":"y","timestamp":5,"metadata":{"facts":{"name":"agent.login"}}}`),
		Metadata: Metadata{Source: `,"facts":{}`, OriginalFormat: "generic", QueueID: "q", Facts: facts}}
	message := m.Append(nil)
	got, ok, err := MessageFacts(message)
	if err != nil || !ok || got.Timestamp != m.Timestamp || got.Metadata.Facts != facts || got.Metadata.Source != m.Metadata.Source {
		t.Errorf("%s is read as %+v, %v, %v", message, got, ok, err)
	}
	before := []byte(`{"id":"cc_evt_1795169700000000000","type":"t","account_id":"a","timestamp":7,"data":{"facts":{"name":"other"}},"metadata":{"source":"s","original_format":"generic","processed_at":1}}`)
	if got, ok, err := MessageFacts(before); ok || err != nil || got.Timestamp != 7 || got.Metadata.Source != "s" {
		t.Errorf("a message without facts: %+v, %v, %v", got, ok, err)
	}
	for _, bad := range []string{"", "of another writer", `{"id":"x","timestamp":x,"data":1}`, string(message[:len(message)-1])} {
		if _, ok, err := MessageFacts([]byte(bad)); ok || err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}
