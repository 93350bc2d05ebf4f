package fanout

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
	"trunkline/internal/fault"
)

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

func TestASnapshotReadsThePartitionsOfItsAccounts(t *testing.T) {
	log, directory := completeLog(8), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	log.normalizes()
	e := loggedIn("kiosk", "7", 1)
	e.partition = log.partitionWithout("kiosk")
	log.place(e.partition, "kiosk")
	log.happen(e)
	want := set(log.partitionOf("kiosk"), e.partition)

	var s *Snapshot
	eventually(t, "the agent", func() bool {
		var err error
		s, err = n.Snapshot(t.Context(), directory.principal(t, "kiosk"))
		return err == nil && len(s.Agents) == 1
	})

	at, err := parseSince(s.Cursor)
	if err != nil || at.partitions != 8 || len(at.positions) != 2 || !want.has(at.positions[0].partition) ||
		!want.has(at.positions[1].partition) {
		t.Errorf("positions %v: %v", at.positions, err)
	}

	n.states.mu.Lock()
	defer n.states.mu.Unlock()

	for p := range n.states.views {
		if !want.has(p) {
			t.Errorf("partition %d is read", p)
		}
	}
}

// Calls that entered their queue at one time have the places that the platform told.
func TestCallsThatEnteredAtOnceHaveThePlatformsPlaces(t *testing.T) {
	all := newMergedEntries()
	for id, entered := range map[string]struct {
		ms    int64
		place int32
	}{"a": {5000, 3}, "b": {5000, 1}, "c": {5000, 2}, "d": {4999, 9}, "e": {6000, 0}} {
		all.add(&state.Entry{AccountID: "acme", Kind: state.Call, ID: id, EnteredMS: entered.ms,
			Facts: event.Facts{State: event.Waiting, QueueID: "q", CallID: id, Position: entered.place}})
	}

	s := &Snapshot{}
	s.fill(all.live, &filter{})
	got := map[string]int{}

	for _, c := range s.Calls {
		got[c.CallID] = c.Position
	}

	for id, want := range map[string]int{"d": 1, "b": 2, "c": 3, "a": 4, "e": 5} {
		if got[id] != want {
			t.Errorf("%s has the place %d, want %d", id, got[id], want)
		}
	}
}

// An agent that is paused in one of its queues is available, and counts there as on a break.
func TestAPauseInOneQueueIsAFactOfTheMembership(t *testing.T) {
	p := state.NewPartition()
	member := func(n event.ID, name event.Name, queue string, report event.AgentReport) {
		report.Device = event.DeviceIdle
		at := event.NextID(0, 1_795_169_700_000, 0) + n<<10
		p.CompleteAndFold(&state.Event{ID: at, Account: "acme", Timestamp: at.Milli() / 1000,
			Facts: event.Facts{Name: name, AgentID: "PJSIP/1003", QueueID: queue, Agent: &report}})
	}

	member(1, event.NameAgentQueueJoin, "support", event.AgentReport{})
	member(2, event.NameAgentQueueJoin, "sales", event.AgentReport{})
	member(3, event.NameAgentBreakStart, "support",
		event.AgentReport{Paused: true, Reason: "paper", PausedSince: 1_795_169_700})

	all := newMergedEntries()
	for _, e := range p.All() {
		all.add(e)
	}

	s := &Snapshot{Timestamp: 1_795_169_701}
	s.fill(all.live, &filter{})
	if len(s.Agents) != 1 || s.Agents[0].State != event.Available {
		t.Fatalf("agents %+v", s.Agents)
	}

	want := []SnapshotMembership{{QueueID: "support", State: event.Break, Reason: "paper", PausedSince: 1_795_169_700}}
	if got := s.Agents[0].Memberships; !slices.Equal(got, want) {
		t.Errorf("memberships %+v, want %+v", got, want)
	}

	for _, q := range s.Queues {
		counts := map[string]event.State{"support": event.Break, "sales": event.Available}
		if len(q.Agents) != 1 || q.Agents[counts[q.QueueID]] != 1 {
			t.Errorf("%s counts %v", q.QueueID, q.Agents)
		}
	}
}
