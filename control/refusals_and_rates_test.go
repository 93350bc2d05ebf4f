package control

import (
	"context"
	"testing"
	"time"

	"trunkline/audit/audittest"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// Each refusal has its kind, and nothing is sent.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	w.agent("1005@x", event.Offline)
	for name, c := range map[string]struct {
		by   *identity.Principal
		r    Request
		want fault.Kind
	}{
		"a user": {plain, Request{AgentID: "1001@x", Action: feed.ActionBreak},
			fault.KindForbidden},
		"an agent of another queue": {supervisor, Request{AgentID: "1003@x", Action: feed.ActionBreak},
			fault.KindNotFound},
		"another's queue": {supervisor,
			Request{AgentID: "1001@x", Action: feed.ActionJoin, QueueID: "sales@x"}, fault.KindForbidden},
		"an agent on another": {agent, Request{AgentID: "1003@x", Action: feed.ActionBreak},
			fault.KindNotFound},
		"an agent listens": {agent, Request{CallID: "call-1", Action: feed.ActionListen},
			fault.KindForbidden},
		"nobody": {admin, Request{AgentID: "9@x", Action: feed.ActionBreak},
			fault.KindNotFound},
		"no such call": {admin, Request{CallID: "call-9", Action: feed.ActionHangup},
			fault.KindNotFound},
		"not logged in": {admin, Request{AgentID: "1005@x", Action: feed.ActionBreak},
			fault.KindConflict},
		"ready without a break": {admin, Request{AgentID: "1001@x", Action: feed.ActionReady},
			fault.KindConflict},
		"a member joins": {admin,
			Request{AgentID: "1001@x", Action: feed.ActionJoin, QueueID: "support@x"}, fault.KindConflict},
		"another action": {admin, Request{AgentID: "1001@x", Action: "dance"}, fault.KindInvalid},
		"no destination": {admin, Request{CallID: "call-1", Action: feed.ActionTransfer},
			fault.KindInvalid},
		"a closed destination": {admin,
			Request{CallID: "call-1", Action: feed.ActionTransfer, Destination: "0900"}, fault.KindForbidden},
		"listening without an extension": {admin, Request{CallID: "call-1", Action: feed.ActionListen},
			fault.KindUnprocessable},
		"the held is not resumed, talking": {admin, Request{CallID: "call-1", Action: feed.ActionResume},
			fault.KindConflict},
	} {
		if _, err := w.actAs(c.by, c.r); fault.KindOf(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}

	w.wait = time.Second
	if _, err := w.actAs(admin,
		Request{AgentID: "1001@x", Action: feed.ActionBreak}); fault.KindOf(err) != fault.KindLimited {
		t.Errorf("over the rate: %v", err)
	}
	if len(w.sent) != 0 {
		t.Errorf("sent %+v", w.sent)
	}
}

// A user has 60 actions a minute, refused ones included; another has its own.
func TestActionsOfAUserHaveARate(t *testing.T) {
	w := newWorld(t)
	w.service.limiter = identity.NewMemoryLimiter()
	ask := func(by *identity.Principal) fault.Kind {
		_, err := w.actAs(by, Request{AgentID: "nobody@x", Action: feed.ActionBreak})
		return fault.KindOf(err)
	}

	for i := range maxActionsPerWindow {
		if kind := ask(supervisor); kind != fault.KindNotFound {
			t.Fatalf("action %d: %s", i+1, kind)
		}
	}

	if kind := ask(supervisor); kind != fault.KindLimited {
		t.Errorf("one more: %s", kind)
	}
	if kind := ask(admin); kind != fault.KindNotFound {
		t.Errorf("another's: %s", kind)
	}
}

// A bot that answers many calls transfers each of them, and asks for a leg that no feed may know.
func TestABotOnItsOwnCallsHasNoRateAndLeavesNoEntryOfAnUnknownLeg(t *testing.T) {
	w := newWorld(t)
	w.service.limiter = identity.NewMemoryLimiter()
	for i := range maxActionsPerWindow + 1 {
		_, err := w.actAs(admin, Request{CallID: "other-leg", Action: feed.ActionHangup, ServesCall: true})
		if kind := fault.KindOf(err); kind != fault.KindNotFound {
			t.Fatalf("action %d: %s", i+1, kind)
		}
	}

	ended := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_ = w.audit.Run(ctx) // ends with ctx
	}()
	stop()
	<-ended
	if got := audittest.Entries(t, w.audit, "demo", "call.control"); len(got) != 0 {
		t.Errorf("the audit log has %q", got)
	}
}
