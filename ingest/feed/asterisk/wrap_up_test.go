package asterisk

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	format "trunkline/format/asterisk"
	"trunkline/ingest/feed"
)

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
		if got := memberSince(&m, m.AgentReport()); got != want {
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
		o.Members[0].Report.WrapUpUntilMS != (last+3600)*1000 || len(o.Queues) != 2 {
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
