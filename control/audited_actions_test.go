package control

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/audit"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

// Each action and each refusal is in the audit log, with who, what and why.
func TestEveryActionAndRefusalIsAudited(t *testing.T) {
	w := newWorld(t)

	ended := make(chan struct{})
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		_ = w.audit.Run(ctx) // ends with ctx
	}()
	defer func() { stop(); <-ended }()

	var want []string
	ask := func(by *identity.Principal, r Request, line string) {
		t.Helper()
		r.Caller, r.Account = by, identity.Account{ID: "demo"}
		_, err := w.service.Act(audit.WithCaller(t.Context(), audit.Caller{Actor: by.Actor()}), r)
		if outcome := line[strings.LastIndex(line, " ")+1:]; err == nil != (outcome == "ok") {
			t.Errorf("%s: %v", line, err)
		}

		want = append(want, line)
	}

	ask(supervisor, Request{AgentID: "1001@x", Action: feed.ActionBreak},
		"user:boss agent.control agent:1001@x break ok")
	ask(supervisor, Request{AgentID: "1001@x", Action: feed.ActionLogout},
		"user:boss agent.control agent:1001@x logout conflict")
	ask(supervisor, Request{AgentID: "1003@x", Action: feed.ActionBreak},
		"user:boss agent.control agent:1003@x break not_found")
	ask(agent, Request{CallID: "call-1", Action: feed.ActionTransfer, Destination: "7001"},
		"user:anna call.control call:call-1 transfer ok")
	ask(supervisor, Request{CallID: "call-1", Action: feed.ActionListen},
		"user:boss call.monitor call:call-1 listen ok")
	ask(agent, Request{CallID: "call-1", Action: feed.ActionBarge},
		"user:anna call.monitor call:call-1 barge forbidden")
	ask(admin, Request{CallID: "call-1", Action: feed.ActionListen},
		"user:root call.monitor call:call-1 listen unprocessable")
	w.refusal = fault.New(fault.KindRefused, "-ERR")
	ask(admin, Request{AgentID: "1003@x", Action: feed.ActionLogout},
		"user:root agent.control agent:1003@x logout refused")
	w.wait = time.Second
	ask(admin, Request{CallID: "call-1", Action: feed.ActionHangup},
		"user:root call.control call:call-1 hangup limited")

	var got []string
	for deadline := time.Now().Add(3 * time.Minute); len(got) < len(want)+1 && time.Now().Before(deadline); {
		page, err := w.audit.List(t.Context(), audit.Filter{AccountID: "demo", End: time.Now().Unix() + 60})
		must(t, err)
		got = nil
		for _, e := range page.Data {
			got = append(got, e.Actor+" "+string(e.Action)+" "+e.Target+" "+e.Outcome)
		}
	}

	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%q is not in the log:\n%s", line, strings.Join(got, "\n"))
		}
	}
}

// An action without its entry is not done, says why, and does not keep the agent.
func TestAnActionWithoutItsEntryIsRefused(t *testing.T) {
	w := newWorld(t)
	_, err := w.db.ExecWithoutTx(t.Context(), `ALTER TABLE audit_pending RENAME TO audit_away`)
	must(t, err)
	request := Request{AgentID: "1001@x", Action: feed.ActionBreak}
	if _, err := w.actAs(admin, request); err == nil || len(w.sent) > 0 {
		t.Fatalf("%v, sent %v", err, w.sent)
	}

	refused, err := w.service.listActions(t.Context(), `state = 'refused'`)
	must(t, err)
	if len(refused) != 1 || refused[0].Message == "" {
		t.Errorf("%+v", refused)
	}

	_, err = w.db.ExecWithoutTx(t.Context(), `ALTER TABLE audit_away RENAME TO audit_pending`)
	must(t, err)
	if _, err := w.actAs(admin, request); err != nil {
		t.Errorf("asked again: %v", err)
	}
}
