package fanout

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/identity"
)

// script makes up a contact center's day.
type script struct {
	random  *rand.Rand
	now     time.Time
	sources [3]int64
	past    [3][]happening
	calls   map[string]bool // those that have not ended, by "account call"
}

var scriptAccounts = []string{"root", "shop", "kiosk", "other"}

// next makes something happen. An agent and a call are always in one partition.
func (s *script) next() happening {
	s.now = s.now.Add(time.Duration(1+s.random.IntN(3)) * time.Second)
	account, n := scriptAccounts[s.random.IntN(len(scriptAccounts))], s.random.IntN(12)
	e := happening{partition: n % 3, at: s.now, account: account}
	agent, call := fmt.Sprint("agent ", n), fmt.Sprint("call ", n)

	if s.random.IntN(2) == 0 {
		e.typ = event.AgentState
		e.facts = []event.Facts{
			{Name: event.NameAgentLogin, State: event.Available}, {Name: event.NameAgentLogout, State: event.Offline},
			{Name: event.NameAgentBreakStart, State: event.Break},
			{Name: event.NameAgentBreakEnd, State: event.Available},
			{Name: event.NameAgentState, State: event.WrapUp}, {Name: event.NameAgentQueueJoin, QueueID: "q"},
		}[s.random.IntN(6)]
		e.facts.AgentID = agent
	} else {
		key := account + " " + call
		names := []event.Name{event.NameQueueCallEntered}
		if s.calls[key] {
			names = []event.Name{event.NameQueueCallOffered, event.NameQueueCallAnswered, event.NameQueueCallEnded,
				event.NameQueueCallAbandoned}
		}

		e.typ = event.QueueCall
		e.facts = event.Facts{Name: names[s.random.IntN(len(names))], QueueID: "q", CallID: call}
		e.facts.State = map[event.Name]event.State{event.NameQueueCallEntered: event.Waiting,
			event.NameQueueCallOffered:  event.Ringing,
			event.NameQueueCallAnswered: event.Talking}[e.facts.Name]
		s.calls[key] = e.facts.State != ""

		if e.facts.State == "" {
			e.facts.State = event.Ended
		}
		if e.facts.State == event.Ringing || e.facts.State == event.Talking {
			e.facts.AgentID = agent
		}
	}

	e.source = s.sources[e.partition]
	s.sources[e.partition]++
	s.past[e.partition] = append(s.past[e.partition], e)

	return e
}

// divide returns the snapshot that the events before the positions make, folded
// from the beginning, and the ids of the events after them.
func (l *memoryLog) divide(t *testing.T, at resumePoint, flt *filter,
	tree *identity.Tree) (s *Snapshot, after map[string]bool) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()

	merged, after := make(map[state.Key]*state.Entry), make(map[string]bool)
	for p, records := range l.partitions {
		fold, seen := state.NewPartition(), make(map[event.ID]bool)
		for i := range records {
			e, _, err := state.ParseEvent(records[i].Key, records[i].Value, nil)
			if err != nil {
				t.Fatal(err)
			}

			e.Account = string(records[i].Header(event.HeaderAccount))
			switch {
			case seen[e.ID]:
			case records[i].Offset < at.positions[p].next:
				fold.FoldCompleted(&e)
			case flt.matchesAccount(e.Account, tree):
				after[e.ID.String()] = true
			}

			seen[e.ID] = true
		}

		for _, e := range fold.All() {
			if flt.matchesAccount(e.AccountID, tree) {
				merged[e.Key()] = e
			}
		}
	}

	s = &Snapshot{}
	s.fill(merged, flt)
	return s, after
}

// TestSnapshotAndWhatFollowsItAreEverything takes snapshots while events of
// three partitions come in, some of them twice, and continues from each as a
// client would: the snapshot is the fold of all events before its cursor, and
// each later event comes once.
func TestSnapshotAndWhatFollowsItAreEverything(t *testing.T) {
	log, directory, presence := newMemoryLog(3), newDirectory(), newPresence()
	log.normalizes()

	// Nothing expires while the test runs.
	day := &script{random: rand.New(rand.NewPCG(4, 7)), now: time.Now().Add(-time.Hour), calls: make(map[string]bool)}
	for range 300 { // before the nodes start
		log.happen(day.next())
	}

	nodes := []*node{
		startNode(t, Config{NodeID: "a", Settings: Settings{RingBytes: 1}}, log, directory, presence, false),
		startNode(t, Config{NodeID: "b"}, log, directory, presence, false),
	}
	type cut struct {
		*Snapshot
		node    int
		account string
	}
	var cuts []cut

	for i := range 900 {
		e := day.next()
		log.happen(e)
		if day.random.IntN(40) == 0 { // a normalizer that ran twice
			all := day.past[e.partition]
			log.happen(all[max(0, len(all)-1-day.random.IntN(20)):]...)
		}
		if i%50 != 0 {
			continue
		}

		account := []string{"root", "shop", "other"}[day.random.IntN(3)]
		on := day.random.IntN(2)
		eventually(t, "another snapshot", func() bool {
			s, err := nodes[on].Snapshot(t.Context(), directory.principal(t, account))
			if err != nil || slices.ContainsFunc(cuts, func(c cut) bool { return c.Cursor == s.Cursor }) {
				return false
			}
			cuts = append(cuts, cut{s, on, account})
			return true
		})
	}

	nodes = append(nodes, startNode(t, Config{NodeID: "c"}, log, directory, presence, false)) // after a restart
	for _, account := range []string{"root", "shop", "other"} {
		s := nodes[0].complete(t, directory.principal(t, account), log)
		for _, n := range nodes[1:] {
			other := n.complete(t, directory.principal(t, account), log)
			other.Timestamp = s.Timestamp
			if text(t, other) != text(t, s) {
				t.Errorf("two nodes differ:\n%s\n%s", text(t, s), text(t, other))
			}
		}

		if len(s.Agents) < 5 || len(s.Calls) < 2 || len(s.Queues) < 1 {
			t.Errorf("there is too little to see: %s", text(t, s))
		}
	}

	for _, c := range cuts {
		at, err := parseSince(c.Cursor)
		if err != nil {
			t.Fatal(err)
		}

		flt := newFilter(directory.principal(t, c.account), directory)
		want, after := log.divide(t, at, flt, directory.Tree())
		want.EventID, want.Cursor, want.Timestamp = c.EventID, c.Cursor, c.Timestamp

		if text(t, c.Snapshot) != text(t, want) {
			t.Fatalf("the snapshot at %v is\n%s\nbut the events before it make\n%s", at.positions, text(t, c.Snapshot),
				text(t, want))
		}

		client := nodes[1-c.node].dial(t, directory.token(c.account, nil, nil), "since="+c.Cursor)
		got := make(map[string]bool)
		for len(got) < len(after) {
			id := client.next()["id"].(string)
			if got[id] {
				t.Errorf("%s came twice", id)
			}
			got[id] = true
		}

		if !maps.Equal(got, after) {
			t.Errorf("%s continued from %s: not the events after it", c.account, c.Cursor)
		}

		_ = client.ws.Close()
	}

	if !strings.Contains(text(t, cuts), `"position":`) {
		t.Error("no call has a position in its queue")
	}
}
