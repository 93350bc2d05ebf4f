package control

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// On FreeSWITCH the visit to a queue, the agent's leg and the caller's, which is held, have ids of their own.
func TestACallOfAQueueIsHeldByItsCallersLeg(t *testing.T) {
	for _, id := range []string{"visit", "agents-leg", "leg"} {
		t.Run(id, func(t *testing.T) {
			w := newWorld(t)
			put := func(id string, s event.State) {
				w.put(&state.Entry{Kind: state.Call, ID: id,
					Facts: event.Facts{State: s, QueueID: "support@x", AgentID: "1001@x", InteractionID: "leg"}})
			}

			for _, call := range []string{"visit", "agents-leg", "leg"} {
				put(call, event.Talking)
			}

			for _, step := range []struct {
				action   feed.Action
				opposite feed.Action
				becomes  event.State
			}{{feed.ActionHold, feed.ActionResume, event.Held}, {feed.ActionResume, feed.ActionHold, event.Talking}} {
				_, err := w.actAs(supervisor, Request{CallID: id, Action: step.opposite})
				if fault.KindOf(err) != fault.KindConflict {
					t.Errorf("%s at first: %v", step.opposite, err)
				}

				action, err := w.actAs(supervisor, Request{CallID: id, Action: step.action})
				must(t, err)
				put("leg", step.becomes)

				if s := w.statusAfter(action, 0); s.State != Confirmed {
					t.Errorf("%s: %+v", step.action, s)
				}
			}
		})
	}
}

// placedCalls is a call that Trunkline places itself, own-1: anna's, of the account demo.
type placedCalls struct {
	hungUp []string
	ended  bool
}

func (o *placedCalls) CheckCancel(_ context.Context, caller *identity.Principal, callID string) (string, error) {
	switch {
	case callID != "own-1":
		return "", fault.NotFound("There is no such call")
	case caller.Role != identity.RoleAdmin && caller.UserID != "anna":
		return "", fault.Forbidden("Only its owner and administrators may cancel a call")
	case o.ended:
		return "", fault.Conflict("The call has ended")
	}
	return "demo", nil
}

func (o *placedCalls) HangUp(_ context.Context, callID string) error {
	o.hungUp = append(o.hungUp, callID)
	return nil
}

func (o *placedCalls) HasEnded(context.Context, string) (bool, error) { return o.ended, nil }

// A call of Trunkline's own PBX is hung up, by its owner or an administrator, and takes no other action.
func TestCallsOfOurOwnPBXAreHungUp(t *testing.T) {
	for _, action := range feed.CallActions {
		t.Run(string(action), func(t *testing.T) {
			w := newWorld(t)
			own := &placedCalls{}
			w.service.ownCalls = own
			r := Request{CallID: "own-1", Action: action}

			if action == feed.ActionTransfer {
				r.Destination = "7001"
			}

			for by, want := range map[*identity.Principal]fault.Kind{supervisor: fault.KindForbidden,
				plain: fault.KindForbidden} {
				if _, err := w.actAs(by, r); fault.KindOf(err) != want {
					t.Errorf("%s: %v", by.Role, err)
				}
			}

			by := agent
			if action.Monitors() {
				by = admin
			}

			id, err := w.actAs(by, r)
			if action != feed.ActionHangup {
				if fault.KindOf(err) != fault.KindConflict || !strings.Contains(err.Error(), "own PBX cannot do this") {
					t.Errorf("%v", err)
				}
				return
			}

			must(t, err)
			if s := w.statusAfter(id, 0); s.State != Accepted {
				t.Errorf("before its end: %+v", s)
			}

			own.ended = true
			if s := w.statusAfter(id, 0); s.State != Confirmed {
				t.Errorf("after its end: %+v", s)
			}
			if _, err := w.actAs(admin, r); fault.KindOf(err) != fault.KindConflict {
				t.Errorf("an ended call: %v", err)
			}
			if len(own.hungUp) != 1 || len(w.sent) != 0 {
				t.Errorf("hung up %q, sent %+v", own.hungUp, w.sent)
			}
		})
	}
}

func TestListeningRingsTheCallersOwnPhoneAndTransfersKeepTheirCall(t *testing.T) {
	w := newWorld(t)
	id, err := w.actAs(supervisor, Request{CallID: "call-1", Action: feed.ActionListen})
	must(t, err)

	if c := w.sent[0]; c.Extension != "1010" || c.CallID != "call-1" || c.ID != id || c.QueueID != "support@x" ||
		c.AgentID != "1001@x" {
		t.Errorf("%+v", c)
	}

	phone := func(leg string, s event.State) {
		w.put(&state.Entry{Kind: state.Call, ID: leg, Facts: event.Facts{State: s, InteractionID: id}})
	}
	phone("desk", event.Ringing) // two phones have the extension
	phone("softphone", event.Ringing)

	if s := w.statusAfter(id, 0); s.State != Accepted {
		t.Errorf("while the phones ring: %+v", s)
	}

	phone("softphone", event.Talking)
	if s := w.statusAfter(id, 0); s.State != Confirmed || s.EventID == "" {
		t.Errorf("listening: %+v", s)
	}
	if w.asked != "group" {
		t.Errorf("the phone was looked for in the account %q", w.asked)
	}

	id, err = w.actAs(agent, Request{CallID: "call-1", Action: feed.ActionTransfer, Destination: "7001"})
	must(t, err)
	w.call("call-1", "sales@x", "", event.Waiting)

	if s := w.statusAfter(id, 0); s.State != Confirmed {
		t.Errorf("transfer: %+v", s)
	}
	if !slices.ContainsFunc(w.events, func(e string) bool { return len(e) > 0 }) {
		t.Error("no events")
	}
}

// A rule asks once for each call, whatever node runs it, is not limited as users are, and asks again for what was
// refused; what a person asks is asked each time.
func TestAProviderHearsACallOnce(t *testing.T) {
	w := newWorld(t)
	w.wait = time.Minute // of the limit
	ears := caller(identity.RoleAdmin, "", identity.Limits{})
	ears.KeyID = "ai_provider:p1"
	rule := Request{CallID: "call-1", Action: feed.ActionAddListener, Key: "hear call-1",
		ListenRequest: ListenRequest{ProviderID: "p1", SessionID: "s1", ByRule: true}}
	w.refusal = fault.New(fault.KindRefused, "The switch refused: -ERR")

	if _, err := w.actAs(ears, rule); fault.KindOf(err) != fault.KindRefused {
		t.Errorf("the first: %v", err)
	}

	w.refusal = nil
	id, err := w.actAs(ears, rule)
	must(t, err)
	again, err := w.actAs(ears, rule) // another node
	must(t, err)

	if again != id || len(w.sent) != 2 || w.sent[1].ProviderID != "p1" || w.sent[1].SessionID != "s1" ||
		w.sent[1].QueueID != "support@x" || w.sent[1].AgentID != "1001@x" {
		t.Errorf("%s and %s, sent %+v", id, again, w.sent)
	}
	if s := w.statusAfter(id, 0); s.State != Confirmed {
		t.Errorf("its end: %+v", s)
	}

	asked := rule
	asked.Key, asked.ByRule = "", false
	if _, err := w.actAs(admin, asked); fault.KindOf(err) != fault.KindLimited {
		t.Errorf("a person's request above the limit: %v", err)
	}

	w.wait = 0
	for range 2 {
		_, err := w.actAs(admin, asked)
		must(t, err)
	}

	if len(w.sent) != 4 {
		t.Errorf("sent %+v", w.sent)
	}

	w.call("call-2", "support@x", "", event.Waiting)
	asked.CallID = "call-2"
	if _, err := w.actAs(admin, asked); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("a call that waits: %v", err)
	}

	named := Request{CallID: "call-1", Action: feed.ActionAddListener}
	if _, err := w.actAs(admin, named); fault.KindOf(err) != fault.KindInvalid {
		t.Errorf("without a provider: %v", err)
	}
}
