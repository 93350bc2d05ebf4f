package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
)

// happening is one event of a contact center, as a normalizer writes it.
type happening struct {
	partition int
	source    int64
	at        time.Time
	account   string
	typ       event.Type
	facts     event.Facts
}

// happen appends events and their state; one that came before is a repeat and
// has the same bytes.
func (l *memoryLog) happen(all ...happening) {
	for _, e := range all {
		l.happened(e)
	}
}

// happened appends an event, and returns its id and its facts, which the state has completed.
func (l *memoryLog) happened(e happening) (id event.ID, facts event.Facts) {
	l.mu.Lock()
	defer l.mu.Unlock()

	s := &l.states[e.partition]
	if s.fold == nil {
		l.writeState(e.partition)
	}

	position := event.Position{Partition: e.partition, Offset: e.source}
	r := kafka.Record{Topic: event.TopicEvents, Partition: e.partition}
	for _, before := range l.partitions[e.partition] {
		if string(before.Header(event.HeaderPosition)) == position.String() {
			r = before
		}
	}

	if r.Value == nil {
		id = event.NextID(s.fold.Last(), e.at.UnixMilli(), e.partition)
		told := state.Event{ID: id, Account: e.account, Timestamp: e.at.Unix(), Source: "test", Facts: e.facts}
		s.fold.Apply(&told)
		facts = told.Facts
		m := event.Message{ID: id, Type: e.typ, AccountID: e.account, Timestamp: e.at.Unix(),
			Data: json.RawMessage("{}"),
			Metadata: event.Metadata{Source: "test", OriginalFormat: "generic", ProcessedAt: e.at.Unix(),
				Facts: facts}}
		memberOf := ""

		if agent := s.fold.Find(state.Key{Account: e.account, Kind: state.Agent, ID: facts.AgentID}); agent != nil {
			memberOf = strings.Join(agent.Queues, event.QueueSeparator)
		}

		r.Time, r.Value = time.UnixMilli(id.Milli()), m.Append(nil)
		for _, h := range []struct{ key, value string }{
			{event.HeaderType, string(e.typ)}, {event.HeaderAccount, e.account},
			{event.HeaderOriginalFormat, "generic"}, {event.HeaderPosition, position.String()},
			{event.HeaderName, string(facts.Name)}, {event.HeaderAgent, facts.AgentID},
			{event.HeaderQueue, facts.QueueID}, {event.HeaderCall, facts.CallID}, {event.HeaderAgentQueues, memberOf},
		} {
			if h.value != "" {
				r.Headers = append(r.Headers, kafka.Header{Key: h.key, Value: []byte(h.value)})
			}
		}
	}

	r.Offset = int64(len(l.partitions[e.partition]))
	l.partitions[e.partition] = append(l.partitions[e.partition], r)
	l.writeState(e.partition)
	l.grown.Broadcast()

	return id, facts
}

func loggedIn(account, agent string, source int64) happening {
	return happening{source: source, at: time.Now(), account: account, typ: event.AgentLogin,
		facts: event.Facts{Name: event.NameAgentLogin, AgentID: agent, State: event.Available}}
}

func (d *memoryDirectory) principal(t *testing.T, account string, accounts ...string) *identity.Principal {
	t.Helper()
	p, err := d.Authenticate(t.Context(), d.token(account, accounts, []string{string(event.AgentPerformance)}))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// complete waits for the snapshot that has everything the log has.
func (n *node) complete(t *testing.T, p *identity.Principal, log *memoryLog) *Snapshot {
	t.Helper()
	var s *Snapshot
	eventually(t, "a complete snapshot", func() bool {
		var err error
		s, err = n.Snapshot(t.Context(), p)
		if fault.KindOf(err) == fault.KindUnavailable {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}

		return slices.Equal(nexts(t, s), log.ends())
	})

	return s
}

// nexts are the offsets at which the snapshot is continued.
func nexts(t *testing.T, s *Snapshot) (all []int64) {
	t.Helper()
	at, err := parseSince(s.Cursor)
	if err != nil || at.id.String() != s.EventID {
		t.Fatalf("cursor %q of %q: %v", s.Cursor, s.EventID, err)
	}
	for _, p := range at.positions {
		all = append(all, p.next)
	}
	return all
}

func (l *memoryLog) ends() (all []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, records := range l.partitions {
		all = append(all, int64(len(records)))
	}
	return all
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSnapshotShowsTheTokensAccounts(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	for i, account := range []string{"root", "shop", "kiosk", "other", "unheard-of"} {
		e := loggedIn(account, "7", int64(i))
		e.partition = i % 2
		log.happen(e)
	}

	for _, c := range []struct {
		name, account string
		accounts      []string
		want          string
	}{
		{"the whole tree", "root", nil, "kiosk root shop"},
		{"an account and below", "shop", nil, "kiosk shop"},
		{"the accounts it named", "root", []string{"shop"}, "shop"},
		{"of those it named, what it may see", "shop", []string{"root", "kiosk"}, "kiosk"},
		{"another tree", "other", nil, "other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var accounts []string
			for _, a := range n.complete(t, directory.principal(t, c.account, c.accounts...), log).Agents {
				accounts = append(accounts, a.AccountID)
			}

			if got := strings.Join(accounts, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}

	if _, err := n.Snapshot(t.Context(),
		directory.principal(t, "shop", "other")); fault.KindOf(err) != fault.KindForbidden {
		t.Errorf("a token whose accounts are all out of sight: %v", err)
	}
}

// What a role sees in a snapshot is what an administrator sees, filtered: agents by their queues, a call
// by its queue or by its agent.
func TestSnapshotOfARoleIsTheAdministratorsFiltered(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)

	var source int64
	happen := func(typ event.Type, facts event.Facts) {
		log.happen(happening{source: source, at: time.Now(), account: "shop", typ: typ, facts: facts})
		source++
	}

	for agent, queue := range map[string]string{"1001": "sales", "1002": "support"} {
		happen(event.AgentLogin,
			event.Facts{Name: event.NameAgentQueueJoin, AgentID: agent, QueueID: queue, State: event.Available})
	}

	for _, c := range []event.Facts{
		{CallID: "c1", QueueID: "sales", AgentID: "1001"}, {CallID: "c2", QueueID: "support", AgentID: "1002"},
		{CallID: "c3", QueueID: "support"}, {CallID: "c4", AgentID: "1001"}, {CallID: "c5"},
	} {
		c.Name, c.State = event.NameQueueCallAnswered, event.Talking
		if c.QueueID == "" {
			c.Name = event.NameCallAnswered
		}
		happen(event.QueueCall, c)
	}

	for name, c := range map[string]struct {
		visibility *identity.Visibility
		want       string
	}{
		"administrator": {identity.NewVisibility(identity.RoleAdmin, "root", "", identity.Limits{}),
			"1001 1002 c1 c2 c3 c4 c5"},
		"head": {identity.NewVisibility(identity.RoleSupervisor, "root", "", identity.Limits{}),
			"1001 1002 c1 c2 c3 c4"},
		"sales": {identity.NewVisibility(identity.RoleSupervisor, "root", "",
			identity.Limits{QueueIDs: []string{"sales"}}), "1001 c1 c4"},
		"support": {identity.NewVisibility(identity.RoleSupervisor, "root", "",
			identity.Limits{QueueIDs: []string{"support"}}), "1002 c2 c3"},
		"elsewhere": {identity.NewVisibility(identity.RoleSupervisor, "root", "",
			identity.Limits{QueueIDs: []string{"elsewhere"}}), ""},
		"agent": {identity.NewVisibility(identity.RoleAgent, "root", "",
			identity.Limits{AgentIDs: []string{"1002"}}), "1002 c2"},
	} {
		p := directory.principal(t, "root")
		directory.edit(func() { directory.visibilities[p.TokenID] = c.visibility })
		var got []string

		s := n.complete(t, p, log)
		for _, a := range s.Agents {
			got = append(got, a.AgentID)
		}

		for _, call := range s.Calls {
			got = append(got, call.CallID)
		}

		slices.Sort(got)
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s sees %q, want %q", name, got, c.want)
		}
	}
}

func TestSnapshotOfNothingCanBeContinued(t *testing.T) {
	log, directory := newMemoryLog(2), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	log.normalizes()
	s := n.complete(t, directory.principal(t, "root"), log)
	if got := text(t, s.Agents) + text(t, s.Calls) + text(t, s.Queues); s.EventID != "" || s.Cursor[0] != '.' ||
		got != "[][][]" {
		t.Errorf("got %+v", s)
	}

	log.put(1, "root", event.QueueCall, 5)
	if got := n.dial(t, directory.token("root", nil, nil), "since="+s.Cursor).numbers(1); got[0] != 5 {
		t.Errorf("got %v", got)
	}
}

// gatedLog gives nothing of the state to its readers before the gate is open.
type gatedLog struct {
	*memoryLog
	gate chan struct{}
}

func (l *gatedLog) Read(cfg kafka.ReaderConfig) kafka.Source {
	r := l.memoryLog.Read(cfg)
	if cfg.Topic != event.TopicState {
		return r
	}
	return &gatedReader{r, l.gate}
}

type gatedReader struct {
	kafka.Source
	gate chan struct{}
}

func (r *gatedReader) Read(ctx context.Context) ([]kafka.Record, error) {
	select {
	case <-r.gate:
		return r.Source.Read(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// inBubble runs a node without a server, where time is free.
func inBubble(t *testing.T, cfg Config,
	test func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(10_000 * 24 * time.Hour) // ids begin in 2001
		log, directory := newMemoryLog(1), newDirectory()
		gate := make(chan struct{})
		f, err := New(testConfig(cfg, "node"),
			Deps{Log: &gatedLog{log, gate}, Auth: directory, Directory: directory, Presence: newPresence(),
				Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		if err != nil {
			t.Fatal(err)
		}

		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)

		// What the test tells the log before it waits for the first time is there
		// when the node starts.
		go func() { done <- f.Run(ctx) }()
		test(t, f, log, gate, directory)
		stop()

		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func agents(t *testing.T, f *Fanout, p *identity.Principal) []string {
	t.Helper()
	s, err := f.Snapshot(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}

	var ids []string
	for _, a := range s.Agents {
		ids = append(ids, a.AgentID)
	}

	return ids
}

func TestSnapshotWaitsForTheWholeState(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
			root := directory.principal(t, "root")
			wantNone := func(when string) {
				t.Helper()
				_, err := f.Snapshot(t.Context(), root)
				if fault.KindOf(err) != fault.KindUnavailable || fault.As(err).RetryAfter != time.Second {
					t.Errorf("%s: %v", when, err)
				}
			}

			wantNone("before a normalizer wrote a state")
			for i := range int64(200) { // two records each, more than a read gives
				log.happen(loggedIn("root", fmt.Sprint(i), i))
			}

			wantNone("before anything was read")
			gate <- struct{}{}
			wantNone("before everything was read")
			gate <- struct{}{}
			time.Sleep(time.Millisecond) // of the bubble: what was read is folded

			if got := agents(t, f, root); len(got) != 200 {
				t.Errorf("got %v", got)
			}

			log.happen(loggedIn("root", "last", 200))
			time.Sleep(maxSnapshotAge + time.Second)
			wantNone("far behind")
			_, err := f.Snapshot(t.Context(), root)
			if !strings.Contains(fmt.Sprint(err), "cc.state/0 was read completely 1") {
				t.Errorf("the refusal does not tell which partition is behind: %v", err)
			}

			close(gate)
			if got := agents(t, f, root); len(got) != 201 {
				t.Errorf("got %v", got)
			}

			time.Sleep(stateLinger + time.Second)
			f.states.mu.Lock()
			following := len(f.states.views) > 0
			f.states.mu.Unlock()

			if following {
				t.Error("the state is followed though nobody asks")
			}
			if got := agents(t, f, root); len(got) != 201 {
				t.Errorf("asked for again: %v", got)
			}
		})
}

func TestSnapshotsAreRefusedWhereTheStateIsTooLarge(t *testing.T) {
	inBubble(t, Config{Settings: Settings{SnapshotBytes: 1 << 20}},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
			root := directory.principal(t, "root")
			close(gate)
			for i := range int64(1<<20/entryBytes + 1) {
				log.happen(loggedIn("root", fmt.Sprint(i), i))
			}

			_, _ = f.Snapshot(t.Context(), root) // the first may come before it is seen
			time.Sleep(time.Second)
			if _, err := f.Snapshot(t.Context(), root); fault.KindOf(err) != fault.KindUnavailable {
				t.Errorf("got %v", err)
			}

			log.mu.Lock()
			log.states[0] = stateTopic{}
			log.mu.Unlock()

			log.normalizes()
			time.Sleep(stateLinger)
			if _, err := f.Snapshot(t.Context(), root); err != nil {
				t.Errorf("when the state has become smaller: %v", err)
			}
		})
}

func TestSnapshotDropsRepeats(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	in, out, again := loggedIn("root", "7", 0), loggedIn("root", "7", 1), loggedIn("root", "7", 2)
	out.typ, out.facts = event.AgentLogout, event.Facts{Name: event.NameAgentLogout, AgentID: "7", State: event.Offline}
	log.happen(in, out, in) // a normalizer that ran twice, as far as we can see yet
	s := n.complete(t, directory.principal(t, "root"), log)
	if len(s.Agents) != 0 {
		t.Errorf("the repeat brought an agent back: %v", s.Agents)
	}

	log.happen(out, again)
	sub := n.dial(t, directory.token("root", nil, nil), "since="+s.Cursor)
	if m := sub.next(); m["type"] != string(event.AgentLogin) {
		t.Errorf("the repeat came after the snapshot: %v", m)
	}
}

func TestSnapshotIsNotGivenWhileTheLogIsAway(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
			root := directory.principal(t, "root")
			log.mu.Lock()
			log.down = true
			log.mu.Unlock()

			close(gate)
			synctest.Wait()
			if _, err := f.Snapshot(t.Context(), root); fault.KindOf(err) != fault.KindUnavailable {
				t.Errorf("got %v", err)
			}

			log.mu.Lock()
			log.down = false
			log.mu.Unlock()

			log.happen(loggedIn("root", "7", 0))
			time.Sleep(2 * time.Second)
			if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
				t.Errorf("got %v", got)
			}
		})
}

// TestASnapshotAsksNoBroker takes snapshots of a state that is read while the broker answers
// reads, but no questions: on a busy machine each question took seconds.
func TestASnapshotAsksNoBroker(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
			root := directory.principal(t, "root")
			close(gate)
			log.happen(loggedIn("root", "7", 0))

			if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
				t.Fatalf("got %v", got)
			}

			log.mu.Lock()
			log.uncounted = true
			log.mu.Unlock()

			log.happen(loggedIn("root", "8", 1))
			time.Sleep(time.Second)
			if got := agents(t, f, root); !slices.Equal(got, []string{"7", "8"}) {
				t.Errorf("got %v", got)
			}
		})
}

// TestCallsVersionTellsWhatCallsInQueuesWouldReturn: whoever follows the calls of a large account reads them
// when they have changed, not when its agents have.
func TestCallsVersionTellsWhatCallsInQueuesWouldReturn(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, _ *memoryDirectory) {
			close(gate)
			source := int64(0)
			call := func(account string, name event.Name, s event.State) {
				log.happen(happening{source: source, at: time.Now(), account: account, typ: event.QueueCall,
					facts: event.Facts{Name: name, CallID: "c", QueueID: "sales", State: s}})
				source++
			}
			visits := func(want int) int64 {
				t.Helper()
				time.Sleep(time.Second) // of the bubble: what was written is read
				version := f.CallsVersion("root")
				calls, err := f.CallsInQueues(t.Context(), "root")
				if err != nil || len(calls) != want {
					t.Fatalf("%d calls, %v, want %d", len(calls), err, want)
				}
				return version
			}

			log.happen(loggedIn("root", "7", 0))
			source++
			visits(0)
			before := visits(0)

			log.happen(loggedIn("root", "8", source))
			source++
			call("below", event.NameQueueCallEntered, event.Waiting)
			if again := visits(0); again != before {
				t.Errorf("agents and calls of others change the version from %d to %d", before, again)
			}

			call("root", event.NameQueueCallEntered, event.Waiting)
			entered := visits(1)
			call("root", event.NameQueueCallAbandoned, event.Ended)
			if left := visits(0); entered == before || left == entered {
				t.Errorf("versions %d, %d with a call, %d after it", before, entered, left)
			}

			before = f.CallsVersion("root")
			time.Sleep(2 * stateLinger) // nobody asks, then the state is read again
			_, _ = f.CallsInQueues(t.Context(), "root")
			if again := visits(0); again == before {
				t.Error("a reading from the beginning has the version of the one before")
			}
		})
}

func TestSnapshotFollowsNewPartitionsAndAccounts(t *testing.T) {
	inBubble(t, Config{},
		func(t *testing.T, f *Fanout, log *memoryLog, gate chan struct{}, directory *memoryDirectory) {
			root := directory.principal(t, "root")
			close(gate)
			synctest.Wait()
			log.normalizes()
			log.addPartition()

			directory.edit(func() {
				directory.tree = identity.NewTree(identity.Account{ID: "root", Name: "root", Domain: "root"},
					identity.Account{ID: "new", Name: "new", Domain: "new", ParentID: "root"})
			})

			e := loggedIn("new", "7", 0)
			e.partition = 1
			log.happen(e)
			time.Sleep(growthInterval + time.Second)

			if got := agents(t, f, root); !slices.Equal(got, []string{"7"}) {
				t.Errorf("got %v", got)
			}

			at, err := parseSince(mustSnapshot(t, f, root).Cursor)
			if err != nil ||
				!slices.Equal(at.positions,
					[]partitionPosition{{0, position{0, -1, unknownEpoch}}, {1, position{1, 0, unknownEpoch}}}) {
				t.Errorf("positions %v: %v", at.positions, err)
			}
		})
}

func mustSnapshot(t *testing.T, f *Fanout, p *identity.Principal) *Snapshot {
	t.Helper()
	s, err := f.Snapshot(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
