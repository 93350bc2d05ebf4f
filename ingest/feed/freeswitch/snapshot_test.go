package freeswitch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/ingest/feed"
)

// knownDomains are those of the accounts.
var knownDomains = domains{"acme.example.com": "acme", "beta.example.com": "beta"}

func snapshotOf(t *testing.T, s feed.Session) feed.Snapshot {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestSnapshots(t *testing.T) {
	for name, cfg := range map[string]feed.Config{
		"vanilla":   {Account: "acme"},
		"fusionpbx": {Accounts: []feed.AccountRule{{Match: "gamma-*", Account: "gamma"}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSwitch{answers: answers(t, name)}
			snapshot := snapshotOf(t, openSession(t, f.serve(t).newPlatform(t, cfg, knownDomains)))
			want := []state.Kind{state.Agent, state.Call, state.Device}
			if !slices.Equal(snapshot.CompleteKinds, want) {
				t.Errorf("it is complete in %q, want %q", snapshot.CompleteKinds, want)
			}
			if len(snapshot.Notes)+len(snapshot.RecentlyChanged) > 0 {
				t.Errorf("it has the notes %q and is unsettled in %q", snapshot.Notes, snapshot.RecentlyChanged)
			}

			golden(t, "snapshot."+name+".jsonl", snapshot.Objects)
		})
	}
}

// The time for a snapshot does not grow by a round trip with each queue and leg.
func TestQueuesAndLegsAreAskedForTogether(t *testing.T) {
	const queues, legs = 100, 50
	f := &fakeSwitch{answers: answers(t, "vanilla"),
		together: map[string]int{"callcenter_config queue list members ": queues / 2, "uuid_getvar ": legs}}
	list := "name|strategy\n"

	for i := range queues {
		name := fmt.Sprintf("q%d@acme.example.com", i)
		list += name + "|ring-all\n"
		f.answers["callcenter_config queue list members "+name] = fmt.Sprintf(
			"queue|uuid|state\n%s|call-%d|Waiting\n+OK\n", name, i)
	}

	f.answers["callcenter_config queue list"] = list + "+OK\n"
	var rows []string
	for i := range legs {
		rows = append(rows, fmt.Sprintf(`{"uuid":"leg-%d","callstate":"ACTIVE"}`, i))
		f.answers[fmt.Sprintf("uuid_getvar leg-%d domain_name", i)] = "_undef_"
		f.answers[fmt.Sprintf("uuid_getvar leg-%d sip_auth_realm", i)] = "beta.example.com"
	}

	f.answers["show channels as json"] = fmt.Sprintf(`{"row_count":%d,"rows":[%s]}`, legs, strings.Join(rows, ","))
	calls := make(map[string]string)
	for _, o := range snapshotOf(t, openSession(t, f.serve(t).newPlatform(t, feed.Config{}, knownDomains))).Objects {
		if o.Kind == state.Call {
			calls[o.ID] = o.Account
		}
	}

	if len(calls) != queues+legs || calls["call-99"] != "acme" || calls["leg-0"] != "beta" ||
		calls["leg-49"] != "beta" {
		t.Errorf("it has %d calls, want %d: %v", len(calls), queues+legs, calls)
	}
}

// Of an inbound leg the presence id is the From header: a caller who writes another tenant's domain
// into it does not put the leg into that tenant's account, with a snapshot as with an event.
func TestACallerDoesNotChooseTheAccountOfALegInASnapshot(t *testing.T) {
	f := &fakeSwitch{answers: answers(t, "vanilla")}
	const row = `{"uuid":%q,"direction":%q,"callstate":"ACTIVE","context":"public","presence_id":"1001@acme.example.com"}`
	rows := []string{fmt.Sprintf(row, "stranger", "inbound"), fmt.Sprintf(row, "phone", "inbound"),
		fmt.Sprintf(row, "dialled", "outbound")}
	f.answers["show channels as json"] = fmt.Sprintf(`{"row_count":%d,"rows":[%s]}`, len(rows), strings.Join(rows, ","))

	for _, leg := range []string{"stranger", "phone"} {
		f.answers["uuid_getvar "+leg+" domain_name"] = "_undef_"
		f.answers["uuid_getvar "+leg+" sip_auth_realm"] = "_undef_"
	}

	f.answers["uuid_getvar phone sip_auth_realm"] = "beta.example.com"

	got := map[string]string{}
	for _, o := range snapshotOf(t, openSession(t, f.serve(t).newPlatform(t, feed.Config{}, knownDomains))).Objects {
		if o.Kind == state.Call {
			got[o.ID] = o.Account
		}
	}

	for leg, want := range map[string]string{"stranger": "", "phone": "beta", "dialled": "acme"} {
		if got[leg] != want {
			t.Errorf("the leg %s is of account %q, want %q", leg, got[leg], want)
		}
	}
}

// Each state of an agent is the one that the events leading to it have.
func TestAgentStatesAreThoseOfTheEvents(t *testing.T) {
	for _, test := range []struct {
		status, word string
		want         event.State
	}{
		{"Available", "Waiting", event.Available}, {"Available", "Reserved", event.Available},
		{"Available", "Receiving", event.Ringing},
		{"Available (On Demand)", "In a queue call", event.Talking},
		{"Available (On Demand)", "Idle", event.OtherState},
		{"On Break", "In a queue call", event.Talking}, {"Logged Out", "Receiving", event.Ringing},
		{"On Break", "Idle", event.Break}, {"Unknown", "Waiting", event.OtherState},
	} {
		f := &fakeSwitch{answers: answers(t, "vanilla")}
		f.answers["callcenter_config agent list"] = "name|status|state\na|" + test.status + "|" + test.word + "\n+OK\n"
		p := f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil)
		for _, o := range snapshotOf(t, openSession(t, p)).Objects {
			if o.Kind == state.Agent && o.Facts.State != test.want {
				t.Errorf("%s, %s is %q, want %q", test.status, test.word, o.Facts.State, test.want)
			}
		}
	}
}

// A part that the switch does not answer is left out, and the reason noted; calls are
// complete only where their queues are known.
func TestSnapshotsThatAreNotComplete(t *testing.T) {
	const refusal = "-ERR permission denied\n"
	for name, test := range map[string]struct {
		change func(answers map[string]string)
		kinds  []state.Kind
		note   string
	}{
		"no mod_callcenter": {func(a map[string]string) {
			maps.DeleteFunc(a, func(command, _ string) bool { return strings.HasPrefix(command, "callcenter_config") })
		}, []state.Kind{state.Call, state.Device}, "modules.conf.xml"},
		"no permission for queues": {func(a map[string]string) {
			a["callcenter_config agent list"] = refusal
		}, []state.Kind{state.Device}, "esl-allowed-api"},
		"no database": {func(a map[string]string) {
			a["show channels as json"], a["show registrations as json"] = "-ERR SQL disabled, no data available!\n", "-ERR SQL disabled, no data available!\n"
		}, []state.Kind{state.Agent}, "-nosql"},
		"a queue that has gone meanwhile": {func(a map[string]string) {
			a["callcenter_config queue list members sales@default"] = "+OK\n"
		}, []state.Kind{state.Agent, state.Call, state.Device}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSwitch{answers: answers(t, "vanilla")}
			test.change(f.answers)
			snapshot := snapshotOf(t, openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil)))
			if !slices.Equal(snapshot.CompleteKinds, test.kinds) ||
				!strings.Contains(strings.Join(snapshot.Notes, " "), test.note) ||
				test.note == "" && len(snapshot.Notes) > 0 {
				t.Errorf("it is complete in %q with the notes %q", snapshot.CompleteKinds, snapshot.Notes)
			}

			for _, o := range snapshot.Objects {
				if o.Kind != state.Call && !slices.Contains(snapshot.CompleteKinds, o.Kind) {
					t.Errorf("it has %+v", o)
				}
			}
		})
	}
}

func TestSnapshotsThatFail(t *testing.T) {
	for name, answer := range map[string]string{
		"callcenter_config agent list": "name|status\nhalf of a row",
		"callcenter_config tier list":  "queue|agent\nno agent\n+OK\n",
		"show channels as json":        `{"row_count":2,"rows":[{"uuid":"a"}]}`,
		"show registrations as json":   "nothing",
	} {
		t.Run(name, func(t *testing.T) {
			f := &fakeSwitch{answers: answers(t, "vanilla")}
			s := openSession(t, f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil))
			f.answer(name, answer)
			if snapshot, err := s.Snapshot(t.Context()); !errors.Is(err, errResponse) {
				t.Errorf("got %+v, %v", snapshot, err)
			}
		})
	}
}

// What had an event just before the question is unsettled; the interaction and the
// account that events named are those of the snapshot.
func TestSnapshotKnowsWhatEventsSaid(t *testing.T) {
	f := &fakeSwitch{answers: answers(t, "fusionpbx"), play: func(p *peer) {
		p.events(`{"Event-Name":"CHANNEL_ANSWER","Unique-ID":"s-1","variable_interaction_id":"i-1","variable_domain_name":"beta.example.com"}`)
	}}
	p := f.serve(t).newPlatform(t, feed.Config{}, knownDomains)
	p.tableLag = 10 * time.Second
	s := openSession(t, p)
	read(t, s, 1)
	s.(*session).connectedAt = time.Now().Add(-time.Minute)
	snapshot := snapshotOf(t, s)
	if !slices.Equal(snapshot.RecentlyChanged, []string{"s-1"}) {
		t.Errorf("it is unsettled in %q", snapshot.RecentlyChanged)
	}

	for _, o := range snapshot.Objects {
		if o.ID == "s-1" && (o.Account != "beta" || o.Facts.InteractionID != "i-1") ||
			o.ID == "m-1" && o.Facts.InteractionID != "i-1" {
			t.Errorf("it has %+v", o)
		}
	}
}

// The core's tables are behind its events, so that a question too soon after the
// connect would miss what happened before it.
func TestSnapshotWaitsForTheTables(t *testing.T) {
	f := &fakeSwitch{answers: answers(t, "vanilla")}
	p := f.serve(t).newPlatform(t, feed.Config{Account: "acme"}, nil)
	p.tableLag = time.Hour
	s := openSession(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Snapshot(ctx); !errors.Is(err, context.Canceled) ||
		f.timesReceived("api show channels as json") > 0 {
		t.Errorf("got %v, and the switch was asked %d times", err, f.timesReceived("api show channels as json"))
	}
}
