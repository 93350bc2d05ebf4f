package control

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

func TestAnActionIsConfirmedByTheStateAfterAnEvent(t *testing.T) {
	w := newWorld(t)
	id, err := w.actAs(supervisor, Request{AgentID: "1001@x", Action: feed.ActionBreak})
	must(t, err)

	if s := w.statusAfter(id, 0); s.State != Accepted {
		t.Fatalf("before an event: %+v", s)
	}

	w.agent("1001@x", event.Break, "support@x")
	if s := w.statusAfter(id, 0); s.State != Confirmed || s.EventID == "" {
		t.Errorf("after the event: %+v", s)
	}
	if len(w.events) != 2 || len(w.sent) != 1 {
		t.Errorf("events %q, sent %+v", w.events, w.sent)
	}

	id, err = w.actAs(supervisor, Request{AgentID: "1001@x", Action: feed.ActionReady})
	must(t, err)
	if s := w.statusAfter(id, 11*time.Second); s.State != Unconfirmed {
		t.Errorf("without an event: %+v", s)
	}
}

// TestAStateThatCannotBeReadConfirmsNothing: a call that has left the state has ended, but nobody knows that here.
func TestAStateThatCannotBeReadConfirmsNothing(t *testing.T) {
	for _, action := range []feed.Action{feed.ActionHangup, feed.ActionTransfer} {
		w := newWorld(t)
		r := Request{CallID: "call-1", Action: action}
		if action == feed.ActionTransfer {
			r.Destination = "7001"
		}
		id, err := w.actAs(admin, r)
		must(t, err)

		w.unread = fault.Unavailable(errors.New("Kafka is away"), time.Second, "the state is not read")
		if s := w.statusAfter(id, 0); s.State != Accepted {
			t.Errorf("%s: %+v", action, s)
		}
		if s := w.statusAfter(id, confirmTimeout+time.Second); s.State != Unconfirmed {
			t.Errorf("%s, after its time: %+v", action, s)
		}
	}
}

func TestThePlatformsRefusalIsTheAnswerAndTheEnd(t *testing.T) {
	w := newWorld(t)
	w.refusal = fault.New(fault.KindRefused, "-ERR no such agent")
	for range 2 {
		if _, err := w.actAs(admin,
			Request{AgentID: "1001@x", Action: feed.ActionBreak, Key: "k"}); fault.KindOf(err) != fault.KindRefused {
			t.Errorf("%v", err)
		}
	}

	if len(w.sent) != 1 {
		t.Errorf("a repeat was sent: %+v", w.sent)
	}

	refused, err := w.service.listActions(t.Context(), `state = 'refused'`)
	must(t, err)
	if len(refused) != 1 || refused[0].Message != "-ERR no such agent" ||
		!strings.Contains(strings.Join(w.events, ""), "-ERR no such agent") {
		t.Errorf("%+v, events %q", refused, w.events)
	}
}

// A platform that does not answer may have taken the command: it is followed to its end.
func TestAPlatformThatDoesNotAnswerLeavesTheActionUnconfirmed(t *testing.T) {
	w := newWorld(t)
	w.refusal = fault.Unavailable(errors.New("timeout"), time.Second, "the switch did not answer")
	request := Request{AgentID: "1001@x", Action: feed.ActionBreak, Key: "k"}
	if _, err := w.actAs(admin, request); fault.KindOf(err) != fault.KindUnavailable {
		t.Fatalf("%v", err)
	}

	open, err := w.service.listActions(t.Context(), `state = 'sent'`)
	must(t, err)
	if len(open) != 1 {
		t.Fatalf("%d actions are followed", len(open))
	}
	if s := w.statusAfter(open[0].ID, 9*time.Second); s.State != Accepted {
		t.Errorf("after 9 s: %+v", s)
	}
	if s := w.statusAfter(open[0].ID, 2*time.Second); s.State != Unconfirmed || s.Message == "" {
		t.Errorf("after 11 s: %+v", s)
	}

	again, err := w.actAs(admin, request)
	if err != nil || again != open[0].ID || len(w.sent) != 1 {
		t.Errorf("a repeat: %s %v, sent %d times", again, err, len(w.sent))
	}
}

// An action that another node sends while this one has no answer is followed to its end.
func TestAnActionThatIsSentLateIsFollowed(t *testing.T) {
	w := newWorld(t)
	w.lost = fault.Unavailable(errors.New("gone"), time.Second, "no answer")
	looks := 0
	w.looked = func() {
		looks++
		if looks == 2 { // the first stores the action, this one is on the way to its end
			_, err := w.db.ExecWithoutTx(t.Context(), `UPDATE control_actions SET state = 'sent'`)
			must(t, err)
		}
	}

	if _, err := w.actAs(admin,
		Request{AgentID: "1001@x", Action: feed.ActionBreak}); fault.KindOf(err) != fault.KindUnavailable {
		t.Fatal(err)
	}

	all, err := w.service.listActions(t.Context(), `1 = 1`)
	must(t, err)
	if len(all) != 1 || looks < 2 || all[0].State != Sent {
		t.Errorf("%d looks, %+v", looks, all)
	}
}

// A node that dies before it sends, while it sends, and after: each action has an end, and is
// not sent again.
func TestAKilledNodeLeavesADefinedEnd(t *testing.T) {
	w := newWorld(t)
	w.lost = fault.Unavailable(errors.New("gone"), time.Second, "no answer")
	if _, err := w.actAs(admin,
		Request{AgentID: "1001@x", Action: feed.ActionBreak}); fault.KindOf(err) != fault.KindUnavailable {
		t.Fatal(err)
	}

	w.lost = nil
	all, err := w.service.listActions(t.Context(), `1 = 1`)
	must(t, err)

	if s := w.statusAfter(all[0].ID, 11*time.Second); s.State != Refused {
		t.Errorf("not sent: %+v", s)
	}

	take := func() error {
		return w.service.SendOnce(t.Context(), all[0].ID,
			func(context.Context, string, feed.Command) error { t.Error("sent again"); return nil })
	}
	if err := take(); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("sent late: %v", err)
	}

	w.refusal = fault.Unavailable(errors.New("killed"), time.Second, "the switch did not answer")
	if _, err := w.actAs(admin,
		Request{AgentID: "1003@x", Action: feed.ActionBreak}); fault.KindOf(err) != fault.KindUnavailable {
		t.Fatal(err)
	}

	all, err = w.service.listActions(t.Context(), `state = 'sent'`)
	must(t, err)
	if len(all) != 1 {
		t.Fatalf("%d actions are on their way", len(all))
	}

	w.mu.Lock()
	w.now = w.now.Add(11 * time.Second)
	w.mu.Unlock()

	w.agent("1003@x", event.Break, "sales@x") // it had taken it
	if s := w.statusAfter(all[0].ID, 0); s.State != Confirmed {
		t.Errorf("taken by a switch that did not answer: %+v", s)
	}
	if len(w.sent) != 1 {
		t.Errorf("sent %+v", w.sent)
	}
}

// An agent that logs out meanwhile is not on a break.
func TestAnAgentThatLogsOutMeanwhileIsUnconfirmed(t *testing.T) {
	w := newWorld(t)
	id, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak})
	must(t, err)
	w.agent("1001@x", event.Offline, "support@x")
	if s := w.statusAfter(id, 11*time.Second); s.State != Unconfirmed {
		t.Errorf("%+v", s)
	}
}
