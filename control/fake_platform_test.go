package control

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
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
	lost    error         // of the way to the node
	unread  error         // of the state
	looked  func()        // called by each look at the clock, if set
	asked   string        // the account of the last look at the entries
	wait    time.Duration // of the limiter: 0 allows the action
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

func (w *world) actAs(by *identity.Principal, r Request) (string, error) {
	r.Caller, r.Account = by, identity.Account{ID: "demo"}
	return w.service.Act(w.t.Context(), r)
}

// statusAfter lets time pass, runs the watch once, and returns the action.
func (w *world) statusAfter(id string, after time.Duration) *Status {
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

var (
	admin      = caller(identity.RoleAdmin, "root", identity.Limits{})
	supervisor = caller(identity.RoleSupervisor, "boss", identity.Limits{QueueIDs: []string{"support@x"}})
	agent      = caller(identity.RoleAgent, "anna", identity.Limits{})
	plain      = caller(identity.RoleUser, "joe", identity.Limits{})
)
