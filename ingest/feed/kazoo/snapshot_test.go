package kazoo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/ingest/feed"
	"trunkline/internal/testservice"
)

// gregorian are seconds of Kazoo's clock.
const gregorian = 63962388900

func TestASnapshotIsWhatCrossbarKnows(t *testing.T) {
	documents := accountTree()
	const acme = "/v2/accounts/" + acmeID
	for _, id := range []string{rootID, subID} { // without ACDc and without calls
		documents["/v2/accounts/"+id+"/channels"] = []any{}
		documents["/v2/accounts/"+id+"/registrations"] = []any{}
	}

	maps.Copy(documents, map[string]any{
		acme + "/agents": []any{
			map[string]any{"id": "a1", "first_name": "Ann", "last_name": "Lee", "queues": []string{"q1", "q2"}},
			map[string]any{"id": "a2", "first_name": "Bob", "queues": []string{}},
			map[string]any{"id": "a3", "queues": []string{"q1"}},
			map[string]any{"id": "a4", "queues": []string{"q1"}},
		},
		acme + "/agents/status": map[string]any{
			"a1": map[string]any{
				fmt.Sprint(gregorian - 100): map[string]any{"agent_id": "a1", "status": "ready",
					"timestamp": gregorian - 100},
				fmt.Sprint(gregorian): map[string]any{"agent_id": "a1", "status": "connected", "timestamp": gregorian,
					"call_id": "c1", "caller_id_number": "+15551230001", "queue_id": "q1"},
			},
			"a2": map[string]any{fmt.Sprint(gregorian): map[string]any{"agent_id": "a2", "status": "paused",
				"timestamp": gregorian}},
		},
		acme + "/agents/a3/status": "ready",   // since the day before
		acme + "/agents/a4/status": "unknown", // never logged in
		acme + "/queues/stats": map[string]any{"current_timestamp": gregorian, "stats": []any{
			map[string]any{"call_id": "c1", "queue_id": "q1", "status": "handled", "agent_id": "a1",
				"caller_id_number": "+15551230001", "entered_timestamp": gregorian - 30,
				"handled_timestamp": gregorian - 10},
			map[string]any{"call_id": "c2", "queue_id": "q1", "status": "waiting", "caller_id_number": "+15551230002",
				"entered_timestamp": gregorian - 5},
			map[string]any{"call_id": "c0", "queue_id": "q1", "status": "processed",
				"entered_timestamp": gregorian - 500},
		}},
		acme + "/channels": []any{
			map[string]any{"uuid": "c1", "answered": true, "direction": "inbound", "destination": "+15559990000",
				"interaction_id": "i1", "timestamp": gregorian - 31},
			map[string]any{"uuid": "c2", "answered": true, "direction": "inbound"},
			map[string]any{"uuid": "c3", "answered": true, "is_onhold": true, "direction": "outbound"},
			map[string]any{"uuid": "c4", "answered": true, "direction": "outbound"},
			map[string]any{"uuid": "c5", "answered": false, "direction": "outbound"},
		},
		acme + "/registrations": []any{
			map[string]any{"username": "u1", "realm": "acme.example.com", "contact": "sip:u1@192.0.2.1", "expires": 60},
			map[string]any{"username": "u1", "realm": "acme.example.com", "contact": "sip:u1@192.0.2.2", "expires": 60},
		},
	})
	crossbar := startCrossbar(t, documents)
	address := testservice.RabbitMQ(t)
	dial(t, address)

	s := openSession(t,
		newTestPlatform(t, withCrossbar(t, address, crossbar),
			accountsByName{"acme.example.com": "acme", "sub.example.com": "sub"}, nil))
	snapshot := func() feed.Snapshot {
		t.Helper()
		got, err := s.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}

	got := snapshot()
	if !slices.Equal(got.CompleteKinds, []state.Kind{state.Agent, state.Call, state.Device}) || len(got.Notes) != 0 {
		t.Errorf("kinds %v, notes %q", got.CompleteKinds, got.Notes)
	}

	const ms = (gregorian - 62167219200) * 1000
	want := []feed.Object{
		{Account: "acme", Kind: state.Agent, ID: "a1", Queues: []string{"q1", "q2"},
			Facts: event.Facts{AgentID: "a1", AgentName: "Ann Lee",
				State: event.Talking, CallID: "c1", Caller: "+15551230001", QueueID: "q1", TimestampMS: ms}},
		{Account: "acme", Kind: state.Agent, ID: "a2", Queues: []string{},
			Facts: event.Facts{AgentID: "a2", AgentName: "Bob", State: event.Break, TimestampMS: ms}},
		{Account: "acme", Kind: state.Agent, ID: "a3", Queues: []string{"q1"},
			Facts: event.Facts{AgentID: "a3", State: event.Available}},
		{Account: "acme", Kind: state.Agent, ID: "a4", Facts: event.Facts{AgentID: "a4", State: event.Offline}},
		{Account: "acme", Kind: state.Call, ID: "c1", Leg: true,
			Facts: event.Facts{CallID: "c1", InteractionID: "i1", QueueID: "q1", AgentID: "a1",
				Caller: "+15551230001", Callee: "+15559990000", State: event.Talking, TimestampMS: ms - 10_000}},
		{Account: "acme", Kind: state.Call, ID: "c2", Leg: true,
			Facts: event.Facts{CallID: "c2", QueueID: "q1", Caller: "+15551230002", State: event.Waiting,
				TimestampMS: ms - 5_000}},
		{Account: "acme", Kind: state.Call, ID: "c3", Leg: true, Facts: event.Facts{CallID: "c3", State: event.Held}},
		{Account: "acme", Kind: state.Call, ID: "c4", Leg: true,
			Facts: event.Facts{CallID: "c4", State: event.Talking}},
		{Account: "acme", Kind: state.Call, ID: "c5", Leg: true, Facts: event.Facts{CallID: "c5"}},
		{Account: "acme", Kind: state.Device, ID: "u1@acme.example.com",
			Facts: event.Facts{AgentID: "u1@acme.example.com", State: event.Registered}},
	}
	slices.SortFunc(got.Objects, func(a, b feed.Object) int {
		return strings.Compare(string(a.Kind)+a.ID, string(b.Kind)+b.ID)
	})

	if a, b := fmt.Sprintf("%+v", got.Objects), fmt.Sprintf("%+v", want); a != b {
		t.Errorf("got  %s\nwant %s", a, b)
	}

	crossbar.mu.Lock()
	crossbar.expired = true
	crossbar.mu.Unlock()

	snapshot() // with a new token
	if crossbar.logins != 2 {
		t.Errorf("%d logins", crossbar.logins)
	}

	crossbar.set(acme+"/channels", nil)
	crossbar.set(acme+"/registrations", []any{})
	if got := snapshot(); !slices.Equal(got.CompleteKinds, []state.Kind{state.Agent}) || len(got.Notes) != 2 {
		t.Errorf("kinds %v, notes %q: calls were not told, and no registrations may mean that nobody answered",
			got.CompleteKinds, got.Notes)
	}

	crossbar.Close()
	if got, err := s.Snapshot(t.Context()); err == nil {
		t.Errorf("without Crossbar: %+v", got)
	}
}

func TestWithoutCrossbarASnapshotIsEmpty(t *testing.T) {
	address := testservice.RabbitMQ(t)
	dial(t, address)
	crossbar := startCrossbar(t, accountTree())
	wrong := withCrossbar(t, address, crossbar)
	wrong.CrossbarAPIKey = "wrong"
	unset := feedConfig(t, address)
	unset.Name += "2"

	for _, cfg := range []feed.Config{wrong, unset} {
		s := openSession(t, newTestPlatform(t, cfg, nil, nil))
		if got, err := s.Snapshot(t.Context()); err != nil || len(got.CompleteKinds) != 0 || len(got.Notes) != 1 ||
			!strings.Contains(got.Notes[0], "crossbar") {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
