package asterisk

import (
	"slices"
	"strings"
	"testing"

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
