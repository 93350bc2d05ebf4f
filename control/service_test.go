package control

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/audit/audittest"
	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// world is a platform with its feed, the state of its agents and calls, and a service.
type world struct {
	t       *testing.T
	service *Service
	db      *sqldb.DB
	audit   *audit.Log

	mu      sync.Mutex
	now     time.Time
	entries map[state.Key]*state.Entry
	sent    []feed.Command
	refusal error                // of the platform
	after   func(c feed.Command) // what the platform does
	events  []string
	lost    error  // of the way to the node
	unread  error  // of the state
	looked  func() // called by each look at the clock, if set
	asked   string // the account of the last look at the entries
	wait    time.Duration
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: time.Now(), entries: map[state.Key]*state.Entry{}}
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	w.db = db
	log := slog.New(slog.NewTextHandler(&testservice.Log{}, nil))
	auditLog, err := audit.New(t.Context(), audit.DefaultSettings(),
		audit.Deps{DB: db, Metrics: prometheus.NewRegistry(), Log: log})
	must(t, err)
	w.audit = auditLog

	w.service, err = New(t.Context(),
		Deps{DB: db, Roster: w, Users: w, Limiter: w, Destinations: w, Publisher: w, Nodes: w, Audit: auditLog,
			Metrics: prometheus.NewRegistry(), Log: log,
			Now: w.clock})

	must(t, err)
	w.agent("1001@x", event.Available, "support@x")
	w.agent("1003@x", event.Available, "sales@x")
	w.call("call-1", "support@x", "1001@x", event.Talking)

	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) clock() time.Time {
	if w.looked != nil {
		w.looked()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) put(e *state.Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.AccountID, e.Source, e.EventID = "demo", "feed:switch", event.FirstID(w.now.Add(2*time.Second), 0)
	w.entries[e.Key()] = e
}

func (w *world) agent(id string, s event.State, queues ...string) {
	w.put(&state.Entry{Kind: state.Agent, ID: id, Facts: event.Facts{State: s}, Queues: queues})
}

func (w *world) call(id, queue, agent string, s event.State) {
	w.put(&state.Entry{Kind: state.Call, ID: id, Facts: event.Facts{State: s, QueueID: queue, AgentID: agent}})
}

func (w *world) FindEntries(ctx context.Context, account string,
	keys ...state.Key) (map[state.Key]*state.Entry, error) {
	return w.SearchEntries(ctx, account, func(e *state.Entry) bool { return slices.Contains(keys, e.Key()) })
}

func (w *world) SearchEntries(_ context.Context, account string,
	want func(*state.Entry) bool) (map[state.Key]*state.Entry, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = account
	found := make(map[state.Key]*state.Entry)
	for key, e := range w.entries {
		if w.unread == nil && want(e) {
			found[key] = e
		}
	}
	return found, w.unread
}

func (w *world) FindUser(_ context.Context, id string) (identity.User, error) {
	// The one with a phone is a user of the account above.
	return identity.User{ID: id, AccountID: "group", PresenceID: map[string]string{"boss": "1010"}[id]}, nil
}

func (w *world) Tree() *identity.Tree {
	return identity.NewTree(identity.Account{ID: "demo", Name: "demo", Domain: "x"})
}

func (w *world) Wait(context.Context, ...identity.Limit) time.Duration { return w.wait }

func (w *world) Fail(context.Context, ...identity.Limit) time.Duration { return w.wait }

func (w *world) Check(_ context.Context, _, _, destination string) error {
	if destination == "0900" {
		return fault.Forbidden("closed")
	}
	return nil
}

func (w *world) Publish(_ context.Context, _ string, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, string(data))
	return nil
}

func (w *world) Send(ctx context.Context, _, id string, take SendOnce) error {
	if w.lost != nil {
		return w.lost
	}

	return take(ctx, id, func(_ context.Context, _ string, c feed.Command) error {
		w.mu.Lock()
		w.sent = append(w.sent, c)
		refusal, after := w.refusal, w.after
		w.mu.Unlock()

		if after != nil {
			after(c)
		}

		return refusal
	})
}

func caller(role identity.Role, id string, limits identity.Limits) *identity.Principal {
	return identity.Principal{UserID: id, AccountID: "demo",
		Role: role}.WithVisibility(identity.NewVisibility(role, "demo", "1001", limits))
}

var (
	admin      = caller(identity.RoleAdmin, "root", identity.Limits{})
	supervisor = caller(identity.RoleSupervisor, "boss", identity.Limits{QueueIDs: []string{"support@x"}})
	agent      = caller(identity.RoleAgent, "anna", identity.Limits{})
	plain      = caller(identity.RoleUser, "joe", identity.Limits{})
)

func (w *world) actAs(by *identity.Principal, r Request) (string, error) {
	r.Caller, r.Account = by, identity.Account{ID: "demo"}
	return w.service.Act(w.t.Context(), r)
}

// end runs the watch once, after a time.
func (w *world) end(id string, after time.Duration) *Status {
	w.t.Helper()
	w.mu.Lock()
	w.now = w.now.Add(after)
	w.mu.Unlock()

	open, err := w.service.listActions(w.t.Context(), `state IN ('asked', 'sent', 'accepted')`)
	must(w.t, err)
	w.service.watch(w.t.Context(), open)
	status, err := w.service.Find(w.t.Context(), admin, id)
	must(w.t, err)

	return status
}

func TestAnActionIsConfirmedByTheStateAfterAnEvent(t *testing.T) {
	w := newWorld(t)
	id, err := w.actAs(supervisor, Request{AgentID: "1001@x", Action: feed.ActionBreak})
	must(t, err)

	if s := w.end(id, 0); s.State != Accepted {
		t.Fatalf("before an event: %+v", s)
	}

	w.agent("1001@x", event.Break, "support@x")
	if s := w.end(id, 0); s.State != Confirmed || s.EventID == "" {
		t.Errorf("after the event: %+v", s)
	}
	if len(w.events) != 2 || len(w.sent) != 1 {
		t.Errorf("events %q, sent %+v", w.events, w.sent)
	}

	id, err = w.actAs(supervisor, Request{AgentID: "1001@x", Action: feed.ActionReady})
	must(t, err)
	if s := w.end(id, 11*time.Second); s.State != Unconfirmed {
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
		if s := w.end(id, 0); s.State != Accepted {
			t.Errorf("%s: %+v", action, s)
		}
		if s := w.end(id, confirmTimeout+time.Second); s.State != Unconfirmed {
			t.Errorf("%s, after its time: %+v", action, s)
		}
	}
}

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

				if s := w.end(action, 0); s.State != Confirmed {
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
			if s := w.end(id, 0); s.State != Accepted {
				t.Errorf("before its end: %+v", s)
			}

			own.ended = true
			if s := w.end(id, 0); s.State != Confirmed {
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
	if s := w.end(open[0].ID, 9*time.Second); s.State != Accepted {
		t.Errorf("after 9 s: %+v", s)
	}
	if s := w.end(open[0].ID, 2*time.Second); s.State != Unconfirmed || s.Message == "" {
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

func TestAnIdempotencyKeyActsOnce(t *testing.T) {
	w := newWorld(t)
	w.after = func(feed.Command) { w.agent("1001@x", event.Break, "support@x") }
	first, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak, Key: "k"})
	must(t, err)
	again, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak, Key: "k"})
	if err != nil || again != first || len(w.sent) != 1 {
		t.Errorf("%s %s %v, sent %d", first, again, err, len(w.sent))
	}

	if _, err := w.actAs(admin,
		Request{AgentID: "1001@x", Action: feed.ActionLogout, Key: "k"}); fault.KindOf(err) != fault.KindConflict {
		t.Errorf("another action under the key: %v", err)
	}
}

// Two actions at once on one agent: one is sent, the other is a conflict.
func TestASecondActionWaitsForTheEndOfTheFirst(t *testing.T) {
	w := newWorld(t)
	_, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak})
	must(t, err)

	if _, err := w.actAs(supervisor,
		Request{AgentID: "1001@x", Action: feed.ActionLogout}); fault.KindOf(err) != fault.KindConflict ||
		len(w.sent) != 1 {
		t.Errorf("%v, sent %d", err, len(w.sent))
	}

	if _, err := w.actAs(supervisor, Request{CallID: "call-1", Action: feed.ActionListen}); err != nil {
		t.Errorf("listening: %v", err)
	}
}

// Of many at the same moment one is sent too.
func TestOfActionsAtTheSameMomentOneIsSent(t *testing.T) {
	w := newWorld(t)
	var asking sync.WaitGroup
	var mu sync.Mutex
	kinds := map[fault.Kind]int{}

	for range 8 {
		asking.Go(func() {
			_, err := w.actAs(admin, Request{AgentID: "1001@x", Action: feed.ActionBreak})
			mu.Lock()
			defer mu.Unlock()
			kinds[fault.KindOf(err)]++
		})
	}

	asking.Wait()
	if kinds[""] != 1 || kinds[fault.KindConflict] != 7 || len(w.sent) != 1 {
		t.Errorf("%v, sent %d times", kinds, len(w.sent))
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

	if s := w.end(all[0].ID, 11*time.Second); s.State != Refused {
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
	if s := w.end(all[0].ID, 0); s.State != Confirmed {
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
	if s := w.end(id, 11*time.Second); s.State != Unconfirmed {
		t.Errorf("%+v", s)
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

	if s := w.end(id, 0); s.State != Accepted {
		t.Errorf("while the phones ring: %+v", s)
	}

	phone("softphone", event.Talking)
	if s := w.end(id, 0); s.State != Confirmed || s.EventID == "" {
		t.Errorf("listening: %+v", s)
	}
	if w.asked != "group" {
		t.Errorf("the phone was looked for in the account %q", w.asked)
	}

	id, err = w.actAs(agent, Request{CallID: "call-1", Action: feed.ActionTransfer, Destination: "7001"})
	must(t, err)
	w.call("call-1", "sales@x", "", event.Waiting)

	if s := w.end(id, 0); s.State != Confirmed {
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
	if s := w.end(id, 0); s.State != Confirmed {
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
