package event

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"testing"
)

func TestFactsAreWrittenAsTheirJSONTagsSay(t *testing.T) {
	for _, f := range []Facts{
		{Name: NameOther},
		{Name: NameQueueCallAnswered, AgentID: "1002@pbx.example.com", AgentName: "Ünal \"U\"", QueueID: "q",
			CallID: "c", InteractionID: "i",
			OriginationCallID: "o", Caller: "+49301", Callee: "1002", State: Talking, Reason: "r",
			PreviousState: Ringing,
			PreviousSince: 1, WaitMS: MillisOf(0), TalkMS: MillisOf(7), TimestampMS: 9, AgentState: Available,
			Contact: "sip:1@x"},
		{Name: NameAgentState,
			Agent: &AgentSaid{Presence: Break, Activity: ActivityNone, Reason: "l\"unch", Device: DeviceIdle,
				InCall: true, Paused: true, PausedSince: 7, WrapUpUntilMS: 8}},
		{Name: NameAgentState, Agent: &AgentSaid{}},
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
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, f) {
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

func TestDurationsAreBounded(t *testing.T) {
	for ms, known := range map[int64]bool{
		0: true, 1: true, MaxDuration.Milliseconds(): true,
		-1: false, MaxDuration.Milliseconds() + 1: false, math.MaxInt64: false, math.MinInt64: false,
	} {
		var read Millis
		err := json.Unmarshal(strconv.AppendInt(nil, ms, 10), &read)
		if got := MillisOf(ms); err != nil || got != read || got.Known != known || known && got.Value != ms ||
			!known && got.Value != 0 {
			t.Errorf("%d ms: %+v, read %+v, %v", ms, got, read, err)
		}
	}
}

func TestIDsWithANULAreNamed(t *testing.T) {
	for field, facts := range map[string]Facts{
		"agent_id": {AgentID: "\x00"}, "queue_id": {QueueID: "a\x00"}, "call_id": {CallID: "\x00a"},
		"interaction_id": {InteractionID: "a\x00b"}, "origination_call_id": {OriginationCallID: "\x00"},
	} {
		if err := facts.Check(); err == nil || err.Error() != field+": holds a NUL character" {
			t.Errorf("%s: %v", field, err)
		}
	}

	good := Facts{AgentID: "a\tb", QueueID: "q\x01", CallID: "\u00fc|/", Caller: "\x00", Reason: "\x00"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
}
