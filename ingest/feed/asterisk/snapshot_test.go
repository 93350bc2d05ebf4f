package asterisk

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/ingest/feed"
)

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

	if !slices.Equal(snapshot.CompleteKinds, []state.Kind{state.Agent, state.Call, state.Device}) {
		t.Errorf("kinds %v", snapshot.CompleteKinds)
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
			fmt.Fprintf(&b, " %s=%s", m.Queue, m.Report.Append(nil))
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
	if !slices.Contains(snapshot.RecentlyChanged, "1795349194.20") {
		t.Errorf("a call that has changed just now is settled: %v", snapshot.RecentlyChanged)
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
