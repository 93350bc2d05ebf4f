package fanout

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/fanout/snapshot"
)

// script makes up a contact center's day: whom it knows, and what can happen.
type script struct {
	random  *rand.Rand
	now     time.Time
	sources [3]int64
	told    [3][]told
	calls   map[string]int // live ones, by "account call", to the partition
}

var scriptAccounts = []string{"root", "shop", "kiosk", "other"}

// next makes something happen, in the partition of whom it happens to.
func (s *script) next() told {
	s.now = s.now.Add(time.Duration(1+s.random.IntN(3)) * time.Second)
	account, n := scriptAccounts[s.random.IntN(len(scriptAccounts))], s.random.IntN(12)
	e := told{partition: n % 3, at: s.now, account: account}
	if s.random.IntN(2) == 0 {
		types := []event.Type{event.AgentLogin, event.AgentLogout, event.AgentBreakStart, event.AgentBreakEnd, event.AgentStatus}
		e.typ, e.format = types[s.random.IntN(len(types))], "generic"
		e.data = fmt.Sprintf(`{"data":{"agent_id":"agent %d"}}`, n)
		if e.typ == event.AgentStatus {
			e.data = fmt.Sprintf(`{"data":{"agent_id":"agent %d","state":"%s"}}`, n, []string{"idle", "busy"}[s.random.IntN(2)])
		}
	} else {
		key := fmt.Sprint(account, n)
		actions := []string{"member-queue-start"}
		if _, live := s.calls[key]; live {
			actions = []string{"agent-offering", "bridge-agent-start", "bridge-agent-fail", "member-queue-end"}
		}
		action := actions[s.random.IntN(len(actions))]
		if s.calls[key] = e.partition; action == "member-queue-end" {
			delete(s.calls, key)
		}
		e.typ, e.format = event.QueueCall, "freeswitch.callcenter"
		e.data = fmt.Sprintf(`{"CC-Action":"%s","CC-Queue":"q","CC-Agent":"agent %d","CC-Member-UUID":"call %d"}`, action, s.random.IntN(3), n)
	}
	e.source = s.sources[e.partition]
	s.sources[e.partition]++
	s.told[e.partition] = append(s.told[e.partition], e)
	return e
}

// wallboard is what a client keeps, written without a look at package floor.
type wallboard struct {
	agents map[string]*SnapshotAgent
	calls  map[string]*SnapshotCall
}

func newWallboard(s *Snapshot) *wallboard {
	w := &wallboard{make(map[string]*SnapshotAgent), make(map[string]*SnapshotCall)}
	for _, a := range s.Agents {
		w.agents[a.AccountID+"/"+a.AgentID] = &a
	}
	for _, c := range s.Calls {
		w.calls[c.AccountID+"/"+c.CallID] = &c
	}
	return w
}

func (w *wallboard) apply(t *testing.T, message []byte) {
	var m struct {
		Type      event.Type
		AccountID string `json:"account_id"`
		Timestamp int64
		Data      struct {
			Data   struct{ Agent_id, State string }
			Action string `json:"CC-Action"`
			Queue  string `json:"CC-Queue"`
			Agent  string `json:"CC-Agent"`
			Member string `json:"CC-Member-UUID"`
		}
	}
	if err := json.Unmarshal(message, &m); err != nil {
		t.Error(err)
	}
	if m.Type == event.QueueCall {
		key := m.AccountID + "/" + m.Data.Member
		state := map[string]snapshot.CallState{"member-queue-start": "waiting", "bridge-agent-fail": "waiting",
			"agent-offering": "offering", "bridge-agent-start": "answered"}[m.Data.Action]
		if state == "" {
			delete(w.calls, key)
			return
		}
		c := w.calls[key]
		if c == nil {
			c = &SnapshotCall{AccountID: m.AccountID, CallID: m.Data.Member}
			w.calls[key] = c
		}
		if c.QueueID = m.Data.Queue; c.State != state {
			c.State, c.Since = state, m.Timestamp
		}
		if c.AgentID = m.Data.Agent; state == "waiting" {
			c.AgentID = ""
		}
		return
	}
	key := m.AccountID + "/" + m.Data.Data.Agent_id
	if m.Type == event.AgentLogout {
		delete(w.agents, key)
		return
	}
	a := w.agents[key]
	if a == nil {
		a = &SnapshotAgent{AccountID: m.AccountID, AgentID: m.Data.Data.Agent_id}
		w.agents[key] = a
	}
	was := *a
	switch m.Type {
	case event.AgentLogin, event.AgentBreakEnd:
		a.Status = "logged_in"
	case event.AgentBreakStart:
		a.Status = "on_break"
	case event.AgentStatus:
		a.State = m.Data.Data.State
	}
	if *a != was {
		a.Since = m.Timestamp
	}
}

func (w *wallboard) shows(t *testing.T) string { return text(t, w.agents) + text(t, w.calls) }

// TestSnapshotAndWhatFollowsItAreEverything takes snapshots while events of
// three partitions come in, some of them twice, and continues from each as a
// client would: nothing may be missing, nothing come again.
func TestSnapshotAndWhatFollowsItAreEverything(t *testing.T) {
	const marker = "the end"
	log, directory, presence := newMemoryLog(3), newDirectory(), newPresence()
	day := &script{random: rand.New(rand.NewPCG(4, 7)), now: time.Now().Add(-3 * time.Hour), calls: make(map[string]int)}
	for range 500 { // before the nodes start
		log.tell(day.next())
	}
	nodes := []*node{
		startNode(t, Config{NodeID: "a", RingBytes: 1}, log, directory, presence, false),
		startNode(t, Config{NodeID: "b"}, log, directory, presence, false),
	}
	type cut struct {
		*Snapshot
		node    int
		account string
	}
	var cuts []cut
	for i := range 1500 {
		e := day.next()
		log.tell(e)
		if day.random.IntN(40) == 0 { // a normalizer that ran twice
			all := day.told[e.partition]
			log.tell(all[max(0, len(all)-1-day.random.IntN(20)):]...)
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
	for _, account := range []string{"kiosk", "other"} {
		for p := range 3 {
			e := told{partition: p, source: day.sources[p], at: day.now.Add(time.Minute), account: account,
				typ: event.AgentPerform, format: "generic", data: `{"data":{"agent_id":"` + marker + `"}}`}
			day.sources[p]++
			log.tell(e)
		}
		day.now = day.now.Add(time.Second)
	}

	nodes = append(nodes, startNode(t, Config{NodeID: "c"}, log, directory, presence, false)) // after a restart
	final := make(map[string]*Snapshot)
	for _, account := range []string{"root", "shop", "other"} {
		s := nodes[0].complete(t, directory.principal(t, account), log)
		for _, n := range nodes[1:] {
			other := n.complete(t, directory.principal(t, account), log)
			if other.Timestamp = s.Timestamp; text(t, other) != text(t, s) {
				t.Errorf("two nodes differ:\n%s\n%s", text(t, s), text(t, other))
			}
		}
		if len(s.Agents) < 5 || len(s.Calls) < 2 {
			t.Errorf("there is too little to see: %s", text(t, s))
		}
		final[account] = s
	}
	for _, c := range cuts {
		board, seen, ends := newWallboard(c.Snapshot), make(map[string]bool), 0
		client := nodes[1-c.node].dial(t, directory.token(c.account, nil, nil), "since="+c.Cursor)
		for ends < 3 {
			_ = client.ws.SetReadDeadline(time.Now().Add(patience))
			_, message, err := client.ws.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			id, _ := event.MessageID(message)
			if seen[id.String()] {
				t.Errorf("%s came twice", id)
			}
			seen[id.String()] = true
			if strings.Contains(string(message), marker) {
				ends++
				continue
			}
			board.apply(t, message)
		}
		_ = client.ws.Close()
		if got, want := board.shows(t), newWallboard(final[c.account]).shows(t); got != want {
			t.Fatalf("%s continued from %s shows\n%s\nbut the state is\n%s", c.account, c.Cursor, got, want)
		}
	}
}
