package asterisk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/ingest/feed"
)

// A rule for queues maps their members, and not the members' own calls.
func TestTheRulesOfChannelsAreToldFromThoseOfMembers(t *testing.T) {
	list := func(name string, items ...string) string {
		return "Response: Success\r\nActionID: a2\r\nEventList: start\r\n\r\n" + strings.Join(items, "") +
			amiEvent(name+"Complete", "ActionID: a2", "EventList: Complete")
	}

	member := amiEvent("QueueMember", "ActionID: a2", "Queue: support", "Name: Ann", "Location: PJSIP/101", "Status: 2")

	own := amiEvent("CoreShowChannel", "ActionID: a2", "Channel: PJSIP/101-1", "Uniqueid: 1.1", "Linkedid: 1.1",
		"Context: from-internal", "ChannelState: 6")
	for name, test := range map[string]struct {
		accounts feed.Accounts
		channels string
		want     []string
	}{
		"the queue alone is mapped": {accounts{"support": "A"}, own,
			[]string{"1 of 1 channels have no account", `"from-internal"`, "mapped by its account code, context"}},
		"both are mapped":             {accounts{"support": "A", "from-*": "A"}, own, nil},
		"the context alone is mapped": {accounts{"from-*": "A"}, own, []string{"1 of 1 queue members have no account"}},
		"no channel to check":         {accounts{"support": "A"}, "", []string{"no channel is up"}},
		"one account":                 {fixed("A"), own, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: map[string]string{"QueueStatus": list("QueueStatus", member),
				"CoreShowChannels": list("CoreShowChannels", test.channels)}}
			p.start()
			platform := newPlatform(t, p, test.accounts, func(c *feed.Config) { c.UseAccountcode = true })
			snapshot, err := openSession(t, platform).Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			notes := slices.DeleteFunc(snapshot.Notes,
				func(note string) bool { return strings.Contains(note, "PJSIPShowContacts") })
			if (len(notes) > 0) != (test.want != nil) {
				t.Errorf("notes %q", notes)
			}

			for _, want := range test.want {
				if len(notes) != 1 || !strings.Contains(notes[0], want) {
					t.Errorf("%q does not name %q", notes, want)
				}
			}
		})
	}
}

func TestAccountIsLearned(t *testing.T) {
	rules := accounts{"acme": "A", "beta": "B", "acme-*": "A", "beta-*": "B", "from-acme": "A"}
	byVariable := func(c *feed.Config) { c.AccountVariable = "TENANT" }
	for name, test := range map[string]struct {
		change func(*feed.Config)
		events string
		want   string // account of each event
	}{
		"code set after the first events": {byCode,
			leg("Newchannel", "1", "1", "AccountCode: ") + leg("Newstate", "1", "2", "AccountCode: ") +
				leg("Newstate", "1", "1", "AccountCode: acme") + leg("Hangup", "1", "2"), "A A A A"},
		"variable of a VarSet": {byVariable,
			leg("Newchannel", "1", "1") + leg("VarSet", "1", "1", "Variable: __TENANT", "Value: beta") +
				leg("Hangup", "1", "1"), "B B"},
		"channel variable": {byVariable, leg("Newchannel", "1", "1", "ChanVariable: TENANT=", "ChanVariable: x=1") +
			leg("Newstate", "1", "1", "ChanVariable: x=1", "ChanVariable: TENANT=beta"), "B B"},
		"queue": {nil,
			leg("Newchannel", "1", "1") + leg("QueueCallerJoin", "1", "1", "Queue: beta-sales") +
				leg("Hangup", "1", "1"), "B B B"},
		"context": {nil,
			leg("Newchannel", "1", "1", "Context: from-acme") + leg("Hangup", "1", "1", "Context: agents"), "A A"},
		"queue before context": {nil,
			leg("Newchannel", "1", "1", "Context: from-acme") +
				leg("QueueCallerJoin", "1", "1", "Queue: beta-x", "Context: from-acme") +
				leg("Hangup", "1", "1", "Context: from-acme"), "A B B"},
		"shared agent": {nil,
			amiEvent("QueueMemberStatus", "Queue: acme-a", "Interface: PJSIP/1", "Status: 1") +
				amiEvent("QueueMemberStatus", "Queue: beta-b", "Interface: PJSIP/1", "Status: 1"), "A B"},
		"record of a learned call": {byCode,
			leg("Newchannel", "1", "1", "AccountCode: acme") + amiEvent("Cdr", "AccountCode: ", "UniqueID: 1"), "A A"},
		"phone of a member": {nil,
			amiEvent("QueueMemberAdded", "Queue: acme-a", "Interface: PJSIP/1", "Status: 1") +
				amiEvent("ContactStatus", "EndpointName: 1", "ContactStatus: Reachable"), "A A"},
		"unknown": {byCode,
			leg("Newchannel", "1", "1", "AccountCode: other", "Context: x") + leg("Hangup", "1", "1"), "- -"},
		"fixed codes are not used": {nil, leg("Newchannel", "1", "1", "AccountCode: acme"), "-"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, events: test.events, end: true}
			p.start()
			events, _ := readAll(t, openSession(t, newPlatform(t, p, rules, test.change)))
			var got []string

			for _, e := range events {
				if e.Account == "" {
					got = append(got, "-")
					if len(e.Names) == 0 && name == "unknown" && strings.Contains(string(e.Value), "other") {
						t.Error("the names that were looked up are missing")
					}
					continue
				}

				got = append(got, e.Account)
			}

			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

// A call whose account stays unknown is held for a moment, and then no more.
func TestHoldIsBounded(t *testing.T) {
	h, now := newHold(), time.Unix(1000, 0)
	add := func(call string) bool { return h.add(call, feed.Event{Value: []byte(call)}, now) }
	add("a")
	now = now.Add(holdTime / 2)
	add("b")
	add("a")

	if out := h.releaseExpired(nil, now); len(out) != 0 {
		t.Fatalf("%d events before their time", len(out))
	}

	now = now.Add(holdTime / 2)
	if out := h.releaseExpired(nil, now); len(out) != 2 || string(out[0].Value) != "a" || h.eventCount != 1 {
		t.Fatalf("%d events, %d held", len(out), h.eventCount)
	}
	if add("a") {
		t.Error("a call whose hold time has expired is held again")
	}
	if out := h.release(nil, "b", "B"); len(out) != 1 || out[0].Account != "B" {
		t.Errorf("released %v", out)
	}

	for i := range maxHeldEvents + 100 {
		add(fmt.Sprint("call", i))
	}

	if out := h.releaseExpired(nil, now); len(out) != 100 || h.eventCount != maxHeldEvents {
		t.Errorf("%d events, %d held", len(out), h.eventCount)
	}

	h.releaseExpired(nil, now.Add(holdTime))
	if len(h.calls) != 0 || len(h.order) != 0 || h.eventCount != 0 {
		t.Errorf("%d calls, %d in order, %d events", len(h.calls), len(h.order), h.eventCount)
	}
}

func TestMemoryOfAccountsIsBounded(t *testing.T) {
	tenants := newAccountLookup(&feed.Config{}, accounts{})
	for i := range 3 * maxCachedIDs {
		tenants.store(fmt.Sprint(i), cachedAccount{"A", true})
	}

	if n := len(tenants.recent) + len(tenants.older); n > 2*maxCachedIDs {
		t.Errorf("%d ids", n)
	}
	if tenants.cached(fmt.Sprint(3*maxCachedIDs-1)).account != "A" {
		t.Error("the last id is forgotten")
	}
}
