package asterisk

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	format "trunkline/format/asterisk"
	"trunkline/ingest/feed"
	"trunkline/telephony/ami"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := "testdata/" + name + ".want"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	if got != string(want) {
		t.Errorf("%s differs:\n%s", file, difference(got, string(want)))
	}
}

// difference returns the first lines that differ.
func difference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("line %d\ngot  %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

var byCode = func(c *feed.Config) { c.UseAccountcode = true }

func TestEventsOfCaptures(t *testing.T) {
	for _, name := range []string{"queue-answered", "queue-abandoned", "member-add-pause-unpause-penalty-remove"} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, events: capture(t, name), piece: 1000, end: true}
			p.start()
			s := openSession(t, newPlatform(t, p, accounts{"acme": "A", "acme-*": "A", "beta-*": "B"}, byCode))
			events, err := readAll(t, s)
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}

			var b strings.Builder
			for _, e := range events {
				b.WriteString(line(e))
				if e.Value != nil && !json.Valid(e.Value) {
					t.Errorf("not JSON: %s", e.Value)
				}
				if e.Account == "" && !e.Resync {
					t.Errorf("without an account: %s", e.Value)
				}
			}

			golden(t, name, b.String())
		})
	}
}

func TestEventsDoNotDependOnHowTheBytesArrive(t *testing.T) {
	text := capture(t, "queue-abandoned")
	var want []string
	for _, piece := range []int{0, 1, 7, 1448} {
		p := &pbx{t: t, events: text, piece: piece, end: true}
		p.start()
		events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
		var got []string

		for _, e := range events {
			got = append(got, line(e))
		}

		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("in pieces of %d: %d events, want %d", piece, len(got), len(want))
		}
	}
}

func TestSubscription(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*feed.Config)
		want   []string
	}{
		"default": {nil, []string{"Login ", "CoreStatus ",
			"Filter ^Event: ((QueueMember|QueueCaller|Agent|Newchannel|Newstate|Dial|BridgeEnter|Hold|Unhold|DTMFEnd|HangupRequest|Hangup|BlindTransfer|AttendedTransfer|ConfbridgeJoin|ConfbridgeLeave|ContactStatus|PeerStatus|ParkedCall|UnParkedCall|Cdr|FullyBooted|Shutdown|Reload)|VarSet.*Variable: (QUEUESTATUS))",
			"GetConfig ", "Events system,call,agent,dialplan,dtmf,cdr"}},
		"words": {func(c *feed.Config) { c.Events = []string{"call", "!^Event: CEL", "agent"} },
			[]string{"Login ", "CoreStatus ", "Filter !^Event: CEL", "GetConfig ", "Events call,agent"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t}
			p.start()
			openSession(t, newPlatform(t, p, fixed("A"), test.change))
			if !slices.Equal(p.actions, test.want) {
				t.Errorf("got %q", p.actions)
			}
		})
	}
}

func TestRefusalsHaveAdvice(t *testing.T) {
	for name, test := range map[string]struct {
		answers map[string]string
		want    string
	}{
		"wrong secret": {map[string]string{"Login": "error: Authentication failed"},
			"manager.conf: [feed] with this secret, and permit ="},
		"no reporting": {map[string]string{"CoreStatus": "error: Permission denied"},
			"manager.conf, [feed]: write = reporting"},
		"a wrong filter": {map[string]string{"Filter": "error: Filter did not compile.  Check the syntax of the filter given."},
			"events: correct the filter"},
		"no known class": {map[string]string{"Events": "Response: Success\r\nActionID: a2\r\nEvents: Off\r\n\r\n"},
			"events: name classes"},
		"an unknown class": {map[string]string{"Events": "error: Invalid event mask"}, "events: name classes"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: test.answers}
			p.start()
			_, err := newPlatform(t, p, fixed("A"), nil).Connect(t.Context())
			var refusal *feed.Refusal
			if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, test.want) {
				t.Fatalf("got %#v", err)
			}
			if strings.Contains(err.Error()+refusal.Advice, "feed-secret") {
				t.Error("the error shows the secret")
			}
		})
	}

	p := &pbx{t: t}
	p.start()
	_, err := newPlatform(t, p, fixed("A"), func(c *feed.Config) { c.TLS.Enabled = true }).Connect(t.Context())
	var refusal *feed.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, "tlsbindaddr") {
		t.Fatalf("TLS to a plain port: %v", err)
	}
}

// If it lacks a privilege for a part of the snapshot, the feed continues with the rest and logs it.
func TestMissingRightsAreNotes(t *testing.T) {
	denied := "error: Permission denied"
	p := &pbx{t: t, answers: map[string]string{"Filter": denied, "CoreShowChannels": denied, "Agents": denied,
		"PJSIPShowContacts": denied}}
	p.start()
	s := openSession(t, newPlatform(t, p, fixed("A"), nil))
	snapshot, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if len(snapshot.Kinds) != 0 || len(snapshot.Notes) != 4 {
		t.Fatalf("kinds %v, notes %q", snapshot.Kinds, snapshot.Notes)
	}

	for i, want := range []string{"eventfilter = ^Event:", "write = agent", "write = reporting", "write = system"} {
		if !strings.Contains(snapshot.Notes[i], want) {
			t.Errorf("%q does not name %q", snapshot.Notes[i], want)
		}
	}
}

// Asterisk leaves out the events of classes that the user may not read without a word. A denied question is told
// from an unknown action.
func TestMissingReadClassesAreNotes(t *testing.T) {
	section := func(lines ...string) string {
		text := "Response: Success\r\nActionID: a2\r\nCategory-000000: feed\r\nLine-000000-000000: secret=feed-secret\r\n"
		for i, line := range lines {
			text += fmt.Sprintf("Line-000000-%06d: %s\r\n", i+1, line)
		}
		return text + "\r\n"
	}

	const all = "read=system,call,agent,dialplan,dtmf,cdr"
	for name, test := range map[string]struct {
		answers map[string]string
		want    []string // words of the notes; nil: none
	}{
		"all classes":   {map[string]string{"GetConfig": section(all, "write=reporting,system,agent")}, nil},
		"read = all":    {map[string]string{"GetConfig": section("read = all")}, nil},
		"the last line": {map[string]string{"GetConfig": section("read=call", all)}, nil},
		"without agent, cdr": {map[string]string{"GetConfig": section("read=system,call,dialplan,dtmf")},
			[]string{"classes agent, cdr (queues and agents; call records)",
				"[feed]: read = system,call,agent,dialplan,dtmf,cdr"}},
		"a space before cdr": {map[string]string{"GetConfig": section("read=system,call,agent,dialplan,dtmf, cdr")},
			[]string{"classes cdr (call records)"}},
		"no read line": {map[string]string{"GetConfig": section()}, []string{"classes system, call, agent"}},
		"denied": {map[string]string{"GetConfig": "error: Permission denied"},
			[]string{"is unknown", "write = system"}},
		"no such section": {map[string]string{"GetConfig": "error: No category found"},
			[]string{"is unknown", "No category found"}},
		"an action is denied": {map[string]string{"QueueStatus": "error: Permission denied"},
			[]string{"agents cannot be corrected", "write = all"}},
		"an unknown action": {map[string]string{"QueueStatus": "error: Invalid/unknown command: QueueStatus"},
			[]string{"does not know the action QueueStatus", "load = app_queue.so"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: test.answers}
			p.start()
			snapshot, err := openSession(t, newPlatform(t, p, fixed("A"), nil)).Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			notes := slices.DeleteFunc(snapshot.Notes,
				func(note string) bool { return strings.Contains(note, "PJSIPShowContacts") })
			if text := strings.Join(notes, "\n"); strings.Contains(text, "feed-secret") ||
				(len(notes) > 0) != (test.want != nil) {
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

func TestIdentityIsTheSequenceNumberOfTheRun(t *testing.T) {
	p := &pbx{t: t, end: true, events: "Event: Hangup\r\nSequenceNumber: 17\r\nUniqueid: 1.1\r\nLinkedid: 1.1\r\n\r\n" +
		"Event: Hangup\r\nSequenceNumber: -2\r\nUniqueid: 1.2\r\nLinkedid: 1.2\r\n\r\nEvent: Hangup\r\nUniqueid: 1.3\r\nLinkedid: 1.3\r\n\r\n"}
	p.start()
	events, err := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
	if !errors.Is(err, io.EOF) || len(events) != 3 {
		t.Fatalf("%d events, %v", len(events), err)
	}

	run := "pbx/2026-11-22T12:05:19"
	for i, want := range []feed.Identity{{Run: run, Number: 17}, {Run: run, Number: 1<<32 - 2}, {}} {
		if events[i].Identity != want {
			t.Errorf("event %d has %v", i, events[i].Identity)
		}
	}

	_, err = readAll(t, openSession(t, newPlatform(t, p, fixed("A"), func(c *feed.Config) { c.Redundancy = 2 })))
	var refusal *feed.Refusal
	if !errors.As(err, &refusal) || !strings.Contains(refusal.Advice, "debug = on") {
		t.Errorf("redundancy 2 without numbers: %v", err)
	}
}

func amiEvent(name string, lines ...string) string {
	return "Event: " + name + "\r\n" + strings.Join(append(lines, ""), "\r\n") + "\r\n"
}

func leg(name, linked, id string, lines ...string) string {
	return amiEvent(name, append([]string{"Uniqueid: " + id, "Linkedid: " + linked}, lines...)...)
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
	tenants := newTenants(&feed.Config{}, accounts{})
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

func TestWrapUpEnds(t *testing.T) {
	last := time.Now().Unix() - 1
	status := amiEvent("QueueMemberStatus", "Queue: q", "Interface: PJSIP/1", "MemberName: Ann", "Status: 1",
		"Paused: 0", "InCall: 0",
		"Wrapuptime: 2", fmt.Sprint("LastCall: ", last), "SequenceNumber: 7")
	p := &pbx{t: t, events: status}
	p.start()
	s := openSession(t, newPlatform(t, p, fixed("A"), nil))

	var got []feed.Event
	for len(got) < 2 {
		events, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, events...)
	}

	end := got[1]
	if end.Format != "asterisk.resync" || end.Account != "A" ||
		!strings.Contains(string(end.Value),
			fmt.Sprintf(`"facts":{"name":"agent.state","agent_id":"PJSIP/1","agent_name":"Ann","queue_id":"q","agent":{"wrap_up_until_ms":%d}}`,
				(last+2)*1000)) {
		t.Errorf("got %s %s", end.Format, end.Value)
	}

	// Another node that reads the switch makes the same record.
	if end.Identity.Number != 7 || !end.Identity.Valid() || end.Identity.Run == got[0].Identity.Run {
		t.Errorf("identity %v after %v", end.Identity, got[0].Identity)
	}
	if time.Now().Unix() < last+2 {
		t.Error("the wrap-up ended early")
	}
}

// After a transfer Asterisk often sends the member's status before it has noted the end of the call, and
// no other one: captured from Asterisk 23.
func TestAWrapUpBeginsThoughTheStatusIsOlderThanTheEndOfTheCall(t *testing.T) {
	before := time.Now().Unix() - 60
	status := func(queue, number string, last int64) string {
		return amiEvent("QueueMemberStatus", "Queue: "+queue, "Interface: PJSIP/1003", "MemberName: Cid", "Status: 1",
			"Paused: 0", "InCall: 0",
			"Wrapuptime: 2", fmt.Sprint("LastCall: ", last), "SequenceNumber: "+number)
	}

	complete := amiEvent("AgentComplete", "Queue: support", "Interface: PJSIP/1003", "MemberName: Cid", "TalkTime: 1",
		"Reason: transfer",
		"Uniqueid: 1795685770.278", "Linkedid: 1795685770.278", "SequenceNumber: 5")

	for name, c := range map[string]struct {
		last int64
		want int // records of the feed's own: begin and end, or the end alone
	}{"an older one": {before, 2}, "that of this call": {time.Now().Unix() + 1, 1}} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, events: complete + status("support", "7", c.last) + status("sales", "8", c.last)}
			p.start()
			s := openSession(t, newPlatform(t, p, fixed("A"), nil))

			var own []feed.Event
			for len(own) < c.want {
				events, err := s.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}

				for _, e := range events {
					if e.Format == "asterisk.resync" {
						own = append(own, e)
					}
				}
			}

			var until []int64
			for _, e := range own {
				var record struct {
					Timestamp float64     `json:"timestamp"`
					Facts     event.Facts `json:"facts"`
				}
				if err := json.Unmarshal(e.Value, &record); err != nil || record.Facts.AgentID != "PJSIP/1003" ||
					record.Facts.Agent == nil || !e.Identity.Valid() {
					t.Fatalf("%s, %v", e.Value, err)
				}

				until = append(until, record.Facts.Agent.WrapUpUntilMS-int64(record.Timestamp*1000))
			}

			if c.want == 2 && (until[0] < 900 || own[0].Identity == own[1].Identity) || until[c.want-1] > 0 {
				t.Errorf("%d ms from the records to the end of the wrap-up: %+v", until, own)
			}
		})
	}
}

// A member is free since its wrap-up is over, not since its last call.
func TestMemberIsFreeSinceTheEndOfItsWrapUp(t *testing.T) {
	now := time.Now()
	last := now.Unix() - 20
	for wrapUp, want := range map[int64]int64{0: last, 5: last + 5, 3600: last} {
		m := format.Member{Status: "1", LastCall: last, WrapUpTime: wrapUp, AtMS: now.UnixMilli()}
		if got := memberSince(&m, m.Said()); got != want {
			t.Errorf("%d s of wrap-up: since %d s after the call, want %d", wrapUp, got-last, want-last)
		}
	}
}

// A wrap-up that began before the connection ends too.
func TestWrapUpFoundBySnapshotEnds(t *testing.T) {
	last := time.Now().Unix()
	members := ""
	for _, queue := range []string{"q", "r"} {
		members += amiEvent("QueueMember", "ActionID: a2", "Queue: "+queue, "Name: Ann", "Location: PJSIP/1",
			"LastCall: "+fmt.Sprint(last), "InCall: 0",
			"Status: 1", "Paused: 0", "Wrapuptime: 3600")
	}

	p := &pbx{t: t, answers: map[string]string{
		"QueueStatus": "Response: Success\r\nActionID: a2\r\nEventList: start\r\n\r\n" + members +
			amiEvent("QueueStatusComplete", "ActionID: a2", "EventList: Complete"),
	}}
	p.start()
	s := openSession(t, newPlatform(t, p, fixed("A"), nil)).(*session)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()

	snapshot, err := s.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}

	if o := snapshot.Objects[0]; o.ID != "PJSIP/1" || len(o.Members) != 2 ||
		o.Members[0].Said.WrapUpUntilMS != (last+3600)*1000 || len(o.Queues) != 2 {
		t.Fatalf("the snapshot has %+v", o)
	}
	if err := s.wait(ctx, time.Now()); err != nil {
		t.Fatal(err)
	}

	s.appendDueEvents(time.Unix(last+3599, 0))
	if len(s.out) > 0 {
		t.Errorf("the wrap-up ended early: %s", s.out[0].Value)
	}

	s.appendDueEvents(time.Unix(last+3600, 0))
	if len(s.out) != 1 || s.out[0].Account != "A" || !s.out[0].Identity.Valid() ||
		!strings.Contains(string(s.out[0].Value),
			fmt.Sprintf(`"facts":{"name":"agent.state","agent_id":"PJSIP/1","agent_name":"Ann","queue_id":"q","agent":{"wrap_up_until_ms":%d}}`,
				(last+3600)*1000)) {
		t.Errorf("got %+v", s.out)
	}
}

// An event is newer than the snapshot.
func TestAWrapUpFoundIsForgottenAfterAnEvent(t *testing.T) {
	p := &pbx{t: t, events: amiEvent("QueueMemberPause", "Queue: q", "Interface: PJSIP/1", "Paused: 1")}
	p.start()
	s := openSession(t, newPlatform(t, p, fixed("A"), nil)).(*session)
	if _, err := s.Read(t.Context()); err != nil {
		t.Fatal(err)
	}

	now := time.Now()
	s.addWrapUps(map[agentKey]wrapUp{{"A", "PJSIP/1"}: {until: now}, {"A", "PJSIP/2"}: {until: now}},
		s.platform.recentEvents.began)

	if len(s.wrapUps) != 1 || s.wrapUps[agentKey{"A", "PJSIP/2"}].until != now {
		t.Errorf("wrap-ups %v", s.wrapUps)
	}
}

func TestResyncIsRequested(t *testing.T) {
	for _, text := range []string{
		amiEvent("Reload", "Module: app_queue"), amiEvent("FullyBooted"),
		"CallerIDName: the rest of an event\r\n\r\n", // after a line break in a caller's number
	} {
		p := &pbx{t: t, events: text, end: true}
		p.start()
		events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
		if len(events) != 1 || !events[0].Resync || events[0].Value != nil {
			t.Errorf("%q: %v", text, events)
		}
	}
}

// Text after a line break in a caller's number is dropped.
func TestInjectedEventsAreNotBelieved(t *testing.T) {
	forged := "Event: Hangup\r\nPrivilege: call,all\r\nUniqueid: 9\r\nLinkedid: 9\r\n"
	for name, text := range map[string]string{
		"whole event": "Event: Newchannel\r\nChannelState: 0\r\nCallerIDNum: 1\r\n\r\n" + forged +
			"\r\nCallerIDName: x\r\nUniqueid: 1\r\nLinkedid: 1\r\n\r\n",
		"open event": "Event: Newchannel\r\nChannelState: 0\r\nCallerIDNum: 1\r\n\r\n" + forged +
			"X: y\r\nCallerIDName: x\r\nUniqueid: 1\r\nLinkedid: 1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, events: text + leg("Newstate", "2", "2") +
				amiEvent("Hangup", "Account-ID: other", "Uniqueid: 2", "Linkedid: 2"), end: true}
			p.start()
			events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
			if len(events) != 3 || !events[0].Resync || events[1].Subjects[0] != "2" ||
				strings.Contains(string(events[2].Value), "other") {
				for _, e := range events {
					t.Log(line(e))
				}
				t.Errorf("%d events", len(events))
			}
		})
	}
}

// Seen on a real one: the channels of the call are gone.
func TestAgentCompleteMayLackItsChannels(t *testing.T) {
	p := &pbx{t: t, end: true,
		events: amiEvent("AgentComplete", "Queue: q", "Interface: PJSIP/1", "MemberName: Ann", "HoldTime: 5",
			"TalkTime: 0", "Reason: caller") +
			leg("Hangup", "1", "1")}
	p.start()
	events, _ := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
	if len(events) != 2 || events[0].Resync {
		t.Errorf("%d events", len(events))
	}
}

func TestShutdownEndsTheSession(t *testing.T) {
	p := &pbx{t: t, events: leg("Hangup", "1", "1") + amiEvent("Shutdown", "Shutdown: Cleanly")}
	p.start()
	events, err := readAll(t, openSession(t, newPlatform(t, p, fixed("A"), nil)))
	if len(events) != 1 || !errors.Is(err, errShutdown) {
		t.Errorf("%d events, %v", len(events), err)
	}
}

func TestSnapshotOfABusyMoment(t *testing.T) {
	p := &pbx{t: t, events: leg("Hold", "1795349194.20", "1795349194.20"), answers: map[string]string{
		"PJSIPShowContacts": "error: No Contacts found"}}
	p.start()
	platform := newPlatform(t, p, accounts{"acme": "A", "acme-*": "A", "beta": "B", "beta-*": "B"}, byCode)
	s := openSession(t, platform)
	snapshot, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if !slices.Equal(snapshot.Kinds, []state.Kind{state.Agent, state.Call, state.Device}) {
		t.Errorf("kinds %v", snapshot.Kinds)
	}

	var b strings.Builder
	for _, o := range snapshot.Objects {
		o.Facts.TimestampMS = min(o.Facts.TimestampMS, 1)
		facts, err := json.Marshal(o.Facts)
		if err != nil {
			t.Fatal(err)
		}

		fmt.Fprintf(&b, "%s %s %s queues=%q %s", o.Account, o.Kind, o.ID, o.Queues, facts)
		for _, m := range o.Members {
			fmt.Fprintf(&b, " %s=%s", m.Queue, m.Said.Append(nil))
		}

		if o.NoQueue {
			b.WriteString(" in no queue")
		}

		b.WriteByte('\n')
	}

	golden(t, "snapshot", b.String())

	if _, err := s.Read(t.Context()); err != nil { // the Hold
		t.Fatal(err)
	}

	snapshot, err = s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	held := slices.IndexFunc(snapshot.Objects, func(o feed.Object) bool { return o.ID == "1795349194.20" })
	if snapshot.Objects[held].Facts.State != event.Held {
		t.Errorf("a call on hold is %s", snapshot.Objects[held].Facts.State)
	}
	if !slices.Contains(snapshot.Unsettled, "1795349194.20") {
		t.Errorf("a call that has changed just now is settled: %v", snapshot.Unsettled)
	}
}

// A caller whom a transfer has parked keeps the application Queue.
func TestSnapshotOfParkedCalls(t *testing.T) {
	list := func(end, items string) string {
		return "Response: Success\r\nActionID: a2\r\nEventList: start\r\n\r\n" + items +
			amiEvent(end, "ActionID: a2", "EventList: Complete")
	}

	channel := func(id, bridge string) string {
		return amiEvent("CoreShowChannel", "ActionID: a2", "Channel: PJSIP/trunk-"+id, "ChannelState: 6", "Exten: 7000",
			"Uniqueid: "+id, "Linkedid: "+id,
			"Application: Queue", "ApplicationData: support,tTxX", "BridgeId: "+bridge)
	}

	answers := map[string]string{
		"CoreShowChannels": list("CoreShowChannelsComplete", channel("1.48", "lot")+channel("1.52", "two")),
		"ParkedCalls": list("ParkedCallsComplete",
			amiEvent("ParkedCall", "ActionID: a2", "ParkeeUniqueid: 1.48", "ParkingSpace: 701")),
	}

	for name, c := range map[string]struct {
		parked string
		want   event.Facts
	}{
		"told":            {answers["ParkedCalls"], event.Facts{State: event.Held, Reason: event.ReasonParked}},
		"without a right": {"error: Permission denied", event.Facts{State: event.Talking}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pbx{t: t, answers: map[string]string{"CoreShowChannels": answers["CoreShowChannels"],
				"ParkedCalls": c.parked}}
			p.start()
			snapshot, err := openSession(t, newPlatform(t, p, fixed("A"), nil)).Snapshot(t.Context())
			if err != nil {
				t.Fatal(err)
			}

			for id, want := range map[string]event.Facts{"1.48": c.want, "1.52": {State: event.Talking}} {
				at := slices.IndexFunc(snapshot.Objects, func(o feed.Object) bool { return o.ID == id })
				if at < 0 || snapshot.Objects[at].Facts.State != want.State ||
					snapshot.Objects[at].Facts.Reason != want.Reason {
					t.Errorf("%s: %+v", id, snapshot.Objects)
				}
			}
		})
	}
}

func TestSnapshotOfRegistrationsAndPoolAgents(t *testing.T) {
	p := &pbx{t: t, answers: map[string]string{
		"PJSIPShowContacts": "Response: Success\r\nActionID: a2\r\nEventList: start\r\n\r\nEvent: ContactList\r\nActionID: a2\r\nUri: sip:101@10.0.0.9\r\nAor: 101\r\nEndpoint: 101\r\nStatus: Reachable\r\n\r\n" +
			"Event: ContactListComplete\r\nActionID: a2\r\nEventList: Complete\r\n\r\n",
		"Agents": "Response: Success\r\nActionID: a2\r\nEventList: start\r\n\r\nEvent: Agents\r\nActionID: a2\r\nAgent: 1001\r\nStatus: AGENT_IDLE\r\n\r\n" +
			"Event: Agents\r\nActionID: a2\r\nAgent: 1003\r\nStatus: AGENT_IDLE\r\n\r\n" +
			"Event: Agents\r\nActionID: a2\r\nAgent: 1002\r\nStatus: AGENT_LOGGEDOFF\r\n\r\nEvent: AgentsComplete\r\nActionID: a2\r\nEventList: Complete\r\n\r\n",
	}}
	p.start()
	snapshot, err := openSession(t, newPlatform(t, p, fixed("A"), nil)).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	found := map[string]event.State{}
	for _, o := range snapshot.Objects {
		found[string(o.Kind)+" "+o.ID] = o.Facts.State
	}

	for id, want := range map[string]event.State{"device PJSIP/101": event.Registered, "agent 1003": event.Available} {
		if found[id] != want {
			t.Errorf("%s is %q", id, found[id])
		}
	}

	if _, ok := found["agent 1002"]; ok {
		t.Error("an agent that is logged off is there")
	}
	if _, twice := found["agent 1001"]; twice {
		t.Error("an agent that is a member under another id is there twice")
	}
	if _, ok := found["device IAX2/trunk"]; !ok {
		t.Error("a device of another channel driver has ended")
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("Event: Hangup\r\nUniqueid: 1\r\nChanVariable: a=1\r\nChanVariable: b=2\r\nX: \x00\"\\\xff")
	f.Fuzz(func(t *testing.T, text string) {
		p := &ami.Message{Size: len(text)}
		for one := range strings.SplitSeq(text, "\r\n") {
			key, value, _ := strings.Cut(one, ": ")
			p.Fields = append(p.Fields,
				ami.Field{Key: strings.ToValidUTF8(key, "?"), Value: strings.ToValidUTF8(value, "?")})
		}

		var object map[string]any
		encoded := appendJSON(nil, p.Fields, time.Unix(1, 0))
		if err := json.Unmarshal(encoded, &object); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}

		keys := map[string]int{}
		for _, field := range p.Fields {
			keys[field.Key]++
		}

		for key, n := range keys {
			switch v := object[key].(type) {
			case nil:
				if key != "Account-ID" {
					t.Fatalf("%q is missing in %s", key, encoded)
				}
			case string:
				if n != 1 {
					t.Fatalf("%q is there %d times and once in %s", key, n, encoded)
				}
			case []any:
				if n != len(v) {
					t.Fatalf("%q is there %d times and %d in %s", key, n, len(v), encoded)
				}
			}
		}

		s := newSession(
			&platform{tenants: newTenants(&feed.Config{UseAccountcode: true, AccountVariable: "a"}, accounts{}),
				recentEvents: newRecentEvents()}, nil)
		s.lastSuspectResync = time.Now()

		if err := s.handleMessage(p, time.Now()); err != nil {
			t.Fatal(err)
		}
	})
}
