package cdrindex

import (
	"context"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/internal/fault"
)

func TestFindReturnsTheLegToTheDestination(t *testing.T) {
	leg := func(id string, change func(*event.CDR)) event.CDR {
		row := call("acme", id, november)
		row.OriginationCallID = "oc"
		change(&row)
		return row
	}

	loopbackA := leg("a", func(r *event.CDR) {
		r.CustomChannelVars, r.AnsweredTime = []byte(`{"loopback_leg":"A"}`), november+1
	})

	loopbackB := leg("b", func(r *event.CDR) {
		r.CustomChannelVars = []byte(`{"loopback_leg":"B"}`)
		r.CustomSIPHeaders = []byte(`{"svc_call_type":"clicktocall"}`)
	})

	phone := leg("c", func(r *event.CDR) { r.OriginationCallID = "" })
	plain := leg("d", func(*event.CDR) {})
	answered := leg("e", func(r *event.CDR) { r.AnsweredTime = november + 3 })

	marked := leg("f", func(r *event.CDR) { r.CustomSIPHeaders = []byte(`{"svc_call_type":"clicktocall"}`) })
	other := leg("g", func(r *event.CDR) { r.CustomSIPHeaders = []byte(`{"svc_call_type":"other"}`) })
	onBoth(t, func(t *testing.T, x *Index) {
		find := func() (event.CDR, error) { return x.Find(t.Context(), "acme", november, november+60, "oc", nil) }
		storeRows(t, x, phone)
		_, err := find()
		wantKind(t, err, fault.KindNotFound)

		// The switch itself may be the destination (a queue, a conference, an announcement):
		// then there are only loopback legs.
		for offset, step := range []struct {
			add  event.CDR
			want string
		}{{loopbackA, "a"}, {loopbackB, "b"}, {plain, "d"}, {other, "d"}, {answered, "e"}, {marked, "f"}} {
			applyRecords(t, x, false, record(step.add, 0, int64(10+offset)))
			if row, err := find(); err != nil || row.CallID != step.want {
				t.Errorf("with %s: got %q, %v", step.add.CallID, row.CallID, err)
			}
		}

		for _, ask := range []struct {
			account, id string
			start, end  int64
		}{
			{"acme", "o", november, november + 60}, {"acme", "oc%", november, november + 60},
			{"acme", "o_", november, november + 60}, {"acme", "OC", november, november + 60},
			{"acme", `' OR "a"='a`, november, november + 60},
			{"acme", strings.Repeat("x", 255), november, november + 60},
			{"zeta", "oc", november, november + 60}, {"acme", "oc", november + 1, november + 60},
			{"acme", "oc", november - 60, november - 1}, {"acme", "", november, november + 60},
		} {
			_, err := x.Find(t.Context(), ask.account, ask.start, ask.end, ask.id, nil)
			wantKind(t, err, fault.KindNotFound)
		}
	})
}

// All phones of a ring group are legs to the destination.
func TestFindReturnsThePhoneThatTalked(t *testing.T) {
	leg := func(id string, change func(*event.CDR)) event.CDR {
		row := call("acme", id, november)
		row.OriginationCallID, row.CustomSIPHeaders = "oc", []byte(`{"svc_call_type":"clicktocall"}`)
		row.HangupCause, row.BillingSeconds = "NORMAL_CLEARING", new(int64)
		change(&row)
		return row
	}

	legs := []event.CDR{ // worst first; the ids are in the opposite order of those that decide between equals
		leg("a", func(r *event.CDR) { r.HangupCause = "LOSE_RACE"; r.AnsweredTime = november + 3 }),
		leg("b", func(r *event.CDR) { r.HangupCause = "ORIGINATOR_CANCEL" }),
		leg("c", func(r *event.CDR) { r.HangupCause = "NO_ANSWER" }),
		leg("d", func(r *event.CDR) { r.AnsweredTime = november + 3 }), // and hung up at once
		leg("e", func(r *event.CDR) { r.AnsweredTime, r.BillingSeconds = november+3, new(int64(7)) }),
	}

	onBoth(t, func(t *testing.T, x *Index) {
		for offset, add := range legs {
			applyRecords(t, x, false, record(add, 0, int64(offset)))
			row, err := x.Find(t.Context(), "acme", november, november+60, "oc", nil)
			if err != nil || row.CallID != add.CallID {
				t.Errorf("with %s: got %q, %v", add.HangupCause, row.CallID, err)
			}
		}
	})
}

func TestACallAtAMonthsEdgeIsFoundFromBothSides(t *testing.T) {
	edge := call("acme", "edge", december-30)
	edge.EndedTime, edge.OriginationCallID = december+30, "oc"
	long := call("acme", "long", november-40*24*3600)
	long.EndedTime = december + 20
	within := call("acme", "within", december+100)
	within.EndedTime = december + 7200
	touching := call("acme", "touching", december-60)
	touching.EndedTime = december

	before := call("acme", "before", december-90)
	before.EndedTime = december - 1
	onBoth(t, func(t *testing.T, x *Index) {
		storeRows(t, x, edge, long, within, touching, before, call("acme", "plain", december-20),
			call("zeta", "edge", december-30))
		for name, c := range map[string]struct {
			start, end int64
			want       []string
		}{
			"the later month":   {december, december + 31*24*3600, []string{"within", "edge", "touching", "long"}},
			"the earlier month": {november, december - 1, []string{"plain", "edge", "touching", "before"}},
			"both, each once": {november, december + 31*24*3600,
				[]string{"within", "plain", "edge", "touching", "before", "long"}},
			"the end's second":    {december + 30, december + 30, []string{"edge"}},
			"behind its end":      {december + 31, december + 40, nil},
			"the start's second":  {december - 30, december - 30, []string{"edge"}},
			"in the middle of it": {december - 10, december + 10, []string{"touching"}},
			"within one month":    {december + 150, december + 8000, nil},
		} {
			f := inRange("acme", c.start, c.end)
			for _, f.PageSize = range []int{50, 1, 2} {
				checkIDs(t, listCallIDs(t, x, f), append([]string{}, c.want...)...)
			}

			f.CallID = "edge"
			var want []string
			for _, id := range c.want {
				if id == "edge" {
					want = append(want, id)
				}
			}

			checkIDs(t, listCallIDs(t, x, f), append([]string{}, want...)...)
			row, err := x.Find(t.Context(), "acme", c.start, c.end, "oc", nil)
			if (err == nil) != (len(want) == 1) || err == nil && row.CallID != "edge" {
				t.Errorf("%s: found %q, %v", name, row.CallID, err)
			}
		}

		// A later version ends in the month it began.
		shorter := edge
		shorter.EndedTime = december - 5
		applyRecords(t, x, false, record(shorter, 0, 100))
		checkIDs(t, listCallIDs(t, x, inRange("acme", december+30, december+30)))
	})
}

// recordingsByCall has the recordings of calls, by call id.
type recordingsByCall map[string]string

func (r recordingsByCall) OfCalls(_ context.Context, _ string, callIDs []string) (map[string]string, error) {
	found := map[string]string{}
	for _, id := range callIDs {
		if recording, ok := r[id]; ok {
			found[id] = recording
		}
	}
	return found, nil
}

// An Asterisk with the mapping of the sequence sends a record for each phone that a channel rang; its
// recording has the channel's id.
func TestARecordingAndTheRecordsOfItsLegFindEachOther(t *testing.T) {
	part := func(id string, start, billed int64, cause, agent string) event.CDR {
		row := call("acme", id, start)
		row.AnsweredTime, row.BillingSeconds, row.HangupCause, row.AgentID = start, &billed, cause, agent
		return row
	}

	named := func(id string) event.CDR { // as Kazoo's Media-Recording-ID does
		row := part(id, november, 5, "NORMAL_CLEARING", "")
		row.RecordingID = "202611-0a1b2c3d"
		return row
	}

	onBoth(t, func(t *testing.T, x *Index) {
		storeRows(t, x,
			part("1795685659.2-9", november, 8, "NO_ANSWER", ""),
			part("1795685659.2-10", november+9, 5, "NORMAL_CLEARING", "PJSIP/1003"),
			part("1795685659.2-12", november+14, 3, "NORMAL_CLEARING", "PJSIP/1009"),
			part("1795685659.2-x", november+14, 3, "NORMAL_CLEARING", "PJSIP/1"),
			part("1795685659.20-11", november+5, 5, "NORMAL_CLEARING", "PJSIP/1004"),
			part("1795685660.1", november+5, 5, "NORMAL_CLEARING", "PJSIP/1005"),
			part("1795685660.1-77", november+9, 5, "NORMAL_CLEARING", "PJSIP/1006"), named("kept-here"),
			named("kept-there"))

		for id, want := range map[string]string{"1795685659.2": "PJSIP/1003", "1795685659.20": "PJSIP/1004",
			"1795685660.1": "PJSIP/1005", "1795685659.2-12": "PJSIP/1009", "1795685659": ""} {
			row, ok, err := x.FindCall(t.Context(), "acme", id, "")
			if err != nil || ok != (want != "") || row.AgentID != want {
				t.Errorf("%s: found %t %s of %s, %v; want %s", id, ok, row.CallID, row.AgentID, err, want)
			}
		}

		if _, ok, err := x.FindCall(t.Context(), "zeta", "1795685659.2", ""); ok || err != nil {
			t.Errorf("of another account: %t, %v", ok, err)
		}

		x.recordings = recordingsByCall{"1795685659.2": "r1", "1795685660.1": "r2", "1795685660.1-77": "r3",
			"kept-here": "r4"}
		defer func() { x.recordings = nil }()

		for id, want := range map[string]string{"1795685659.2-9": "r1", "1795685659.2-12": "r1", "1795685659.2-x": "",
			"1795685659.20-11": "", "1795685660.1": "r2", "1795685660.1-77": "r3", "kept-here": "r4",
			"kept-there": "202611-0a1b2c3d"} {
			row, ok, err := x.FindCall(t.Context(), "acme", id, "")
			if err != nil || !ok || row.RecordingID != want {
				t.Errorf("%s: the recording is %q, %t, %v; want %q", id, row.RecordingID, ok, err, want)
			}
		}
	})
}
