package asterisk

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

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

	if len(snapshot.CompleteKinds) != 0 || len(snapshot.Notes) != 4 {
		t.Fatalf("kinds %v, notes %q", snapshot.CompleteKinds, snapshot.Notes)
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
