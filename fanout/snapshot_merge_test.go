package fanout

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"trunkline/event"
	"trunkline/event/state"
)

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

// An entry that is in several partitions is that of the newest event, in whatever order they
// are merged.
func TestTheNewestEventDecidesAmongPartitions(t *testing.T) {
	entry := func(at event.ID, s event.State) *state.Entry {
		return &state.Entry{AccountID: "acme", Kind: state.Call, ID: "c", EventID: at, Facts: event.Facts{State: s}}
	}
	for name, c := range map[string]struct {
		entries []*state.Entry
		want    event.State // "": it has ended
	}{
		"it has ended elsewhere": {[]*state.Entry{entry(1, event.Talking), entry(2, event.Ended)}, ""},
		"it ended before": {[]*state.Entry{entry(1, event.Ended), entry(2, event.Talking)},
			event.Talking},
		"the older of two that live, first": {[]*state.Entry{entry(1, event.Waiting), entry(2, event.Talking)},
			event.Talking},
		"the older of two that live, second": {[]*state.Entry{entry(2, event.Talking), entry(1, event.Waiting)},
			event.Talking},
		"what ended before comes second": {[]*state.Entry{entry(2, event.Talking), entry(1, event.Ended)},
			event.Talking},
		"it ended before, and then elsewhere": {[]*state.Entry{entry(1, event.Ended), entry(2, event.Talking),
			entry(3, event.Ended)}, ""},
		"what has ended elsewhere comes first": {[]*state.Entry{entry(2, event.Ended), entry(1, event.Talking)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all := newMergedEntries()
			all.ended = map[state.Key]*state.Entry{}
			reused := &state.Entry{} // as a view does it with ended calls

			for _, e := range c.entries {
				if !e.Live() {
					*reused = *e
					e = reused
				}
				all.add(e)
			}

			*reused = state.Entry{}
			all.settle()
			if len(all.live)+len(all.ended) != 1 || c.want == "" && all.ended[entry(0, "").Key()].ID != "c" {
				t.Errorf("live %v, ended %v", all.live, all.ended)
			}

			var got event.State
			for _, e := range all.live {
				got = e.State
			}

			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// An agent that is paused in one of its queues is available, and counts there as on a break.
func TestAPauseInOneQueueIsAFactOfTheMembership(t *testing.T) {
	p := state.NewPartition()
	member := func(n event.ID, name event.Name, queue string, said event.AgentSaid) {
		said.Device = event.DeviceIdle
		at := event.NextID(0, 1_795_169_700_000, 0) + n<<10
		p.Apply(&state.Event{ID: at, Account: "acme", Timestamp: at.Milli() / 1000,
			Facts: event.Facts{Name: name, AgentID: "PJSIP/1003", QueueID: queue, Agent: &said}})
	}

	member(1, event.NameAgentQueueJoin, "support", event.AgentSaid{})
	member(2, event.NameAgentQueueJoin, "sales", event.AgentSaid{})
	member(3, event.NameAgentBreakStart, "support",
		event.AgentSaid{Paused: true, Reason: "paper", PausedSince: 1_795_169_700})

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

// Whatever comes, the agents, calls and queues of a snapshot agree.
func TestASnapshotNeverContradictsItself(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 34))
		p := state.NewPartition()
		var last event.ID

		for i := range 300 {
			last = event.NextID(last, 1_795_169_700_000+int64(i)*1000, 0)
			e := &state.Event{ID: last, Account: "acme", Timestamp: last.Milli() / 1000, Facts: randomFacts(random)}
			p.Apply(e)

			all := newMergedEntries()
			for _, entry := range p.All() {
				all.add(entry)
			}

			s := &Snapshot{Timestamp: e.Timestamp}
			s.fill(all.live, &filter{})
			if wrong := contradiction(s, all.live); wrong != "" {
				text, _ := json.Marshal(s)
				t.Fatalf("seed %d, event %d, %+v (%+v): %s\n%s", seed, i, e.Facts, e.Facts.Agent, wrong, text)
			}
		}
	}
}

func randomFacts(random *rand.Rand) event.Facts {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	f := event.Facts{Name: event.Names()[random.IntN(23)], Position: random.Int32N(3),
		AgentID: pick("", "x", "y", "z"), CallID: pick("", "c", "d", "e", "f"), QueueID: pick("", "q", "r")}

	switch random.IntN(4) {
	case 0:
		f.State = event.State(pick("offline", "available", "ringing", "talking", "break", "waiting", "held", "ended"))
	case 1:
		if f.Name == event.NameAgentState || f.Name == event.NameAgentBreakStart {
			f.Agent = &event.AgentSaid{Device: event.Device(pick("idle", "ringing", "in_use", "busy", "unreachable"))}
			f.Agent.InCall, f.Agent.Paused = random.IntN(3) == 0, random.IntN(3) == 0
		}
	}

	return f
}

// contradiction returns what does not agree in a snapshot, "" if all does.
func contradiction(s *Snapshot, live map[state.Key]*state.Entry) string {
	agents := map[string]SnapshotAgent{}
	counted := map[string]map[event.State]int{}
	for _, a := range s.Agents {
		agents[a.AgentID] = a
		for _, queue := range a.Queues {
			if counted[queue] == nil {
				counted[queue] = map[event.State]int{}
			}
			counted[queue][live[state.Key{Account: a.AccountID, Kind: state.Agent, ID: a.AgentID}].InQueue(queue)]++
		}
	}

	places, talking := map[string][]int{}, map[string]int{}
	for _, c := range s.Calls {
		with, known := agents[c.AgentID]
		switch visits := live[state.Key{Account: c.AccountID, Kind: state.Call, ID: c.CallID}].IsVisit(); {
		case c.AgentID != "" && (!known || with.State != event.Talking && with.State != event.Ringing):
			return "call " + c.CallID + " is with an agent who has none"
		case (c.Position != 0) != (visits && (c.State == event.Waiting || c.State == event.Ringing)):
			return "call " + c.CallID + " has a place and does not wait, or waits without one"
		case c.Position != 0:
			places[c.QueueID] = append(places[c.QueueID], c.Position)
		case visits:
			talking[c.QueueID]++
		}
	}

	for _, a := range s.Agents {
		if a.CallID == "" {
			continue
		}

		call := live[state.Key{Account: a.AccountID, Kind: state.Call, ID: a.CallID}]
		if call != nil && a.State != event.Talking && a.State != event.Ringing {
			return "agent " + a.AgentID + " has a call and is " + string(a.State)
		}
	}

	for _, q := range s.Queues {
		slices.Sort(places[q.QueueID])
		for i, place := range places[q.QueueID] {
			if place != i+1 {
				return fmt.Sprintf("queue %s has the places %v", q.QueueID, places[q.QueueID])
			}
		}

		if q.Waiting != len(places[q.QueueID]) || q.Talking != talking[q.QueueID] ||
			(q.LongestWaitSince != 0) != (q.Waiting > 0) {
			return fmt.Sprintf("queue %s has waiting %d, talking %d, longest wait since %d", q.QueueID, q.Waiting,
				q.Talking, q.LongestWaitSince)
		}

		if !maps.Equal(q.Agents, counted[q.QueueID]) && len(q.Agents)+len(counted[q.QueueID]) > 0 {
			return fmt.Sprintf("queue %s has the agents %v, not %v", q.QueueID, q.Agents, counted[q.QueueID])
		}

		delete(places, q.QueueID)
		delete(talking, q.QueueID)
	}

	if len(places)+len(talking) > 0 {
		return fmt.Sprintf("calls of queues that are not there: %v %v", places, talking)
	}

	return ""
}
