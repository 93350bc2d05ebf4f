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

// Whatever comes, the agents, calls and queues of a snapshot agree.
func TestASnapshotNeverContradictsItself(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 34))
		p := state.NewPartition()
		var last event.ID

		for i := range 300 {
			last = event.NextID(last, 1_795_169_700_000+int64(i)*1000, 0)
			e := &state.Event{ID: last, Account: "acme", Timestamp: last.Milli() / 1000, Facts: randomFacts(random)}
			p.CompleteAndFold(e)

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
			f.Agent = &event.AgentReport{Device: event.Device(pick("idle", "ringing", "in_use", "busy", "unreachable"))}
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
		switch visits := live[state.Key{Account: c.AccountID, Kind: state.Call, ID: c.CallID}].IsLiveVisit(); {
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
