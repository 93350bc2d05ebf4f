package cdrindex

import (
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
