package asterisk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/ingest/feed"
)

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
