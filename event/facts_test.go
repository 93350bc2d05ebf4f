package event

import (
	"encoding/json"
	"reflect"
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
			Agent: &AgentReport{Presence: Break, Activity: ActivityNone, Reason: "l\"unch", Device: DeviceIdle,
				InCall: true, Paused: true, PausedSince: 7, WrapUpUntilMS: 8}},
		{Name: NameAgentState, Agent: &AgentReport{}},
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
