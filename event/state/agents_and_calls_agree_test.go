package state

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"trunkline/event"
)

// contradiction returns what agents and calls say of each other and is not so on the other
// side, "" if there is nothing.
func contradiction(p *Partition) string {
	entry := func(of *Entry, kind Kind, id string) *Entry {
		e := p.Find(Key{of.AccountID, kind, id})
		if e == nil || !e.Live() {
			return &Entry{ID: "none"}
		}
		return e
	}

	for _, e := range p.All() {
		switch {
		case e.Kind == Agent && e.KnownAgent != nil:
			for _, c := range e.KnownAgent.Calls {
				call := entry(e, Call, c.ID)
				if !c.Ringing && (call.AgentID != e.ID || call.State != event.Talking && call.State != event.Held) ||
					c.Ringing && !slices.Contains(call.Ringing, e.ID) {
					return fmt.Sprintf("agent %s has a call that is %s", e.Append(nil), call.Append(nil))
				}
			}

			if len(e.KnownAgent.Calls) > 0 && !onCall(e.State) || len(e.KnownAgent.Calls) > 0 && e.CallID == "" {
				return fmt.Sprintf("agent %s has calls", e.Append(nil))
			}
		case e.Kind == Call && e.Live():
			if e.State == event.Waiting && (e.AgentID != "" || len(e.Ringing) > 0) {
				return fmt.Sprintf("call %s waits", e.Append(nil))
			}

			agents := e.Ringing
			if e.AgentID != "" {
				agents = append(slices.Clone(agents), e.AgentID)
			}

			for _, id := range agents {
				agent := entry(e, Agent, id)
				if agent.KnownAgent == nil || !agent.KnownAgent.hasCall(e.ID) {
					return fmt.Sprintf("call %s is with the agent %s", e.Append(nil), agent.Append(nil))
				}
			}
		}
	}

	return ""
}

// randomFacts returns facts about one of a few agents, calls and queues.
func randomFacts(random *rand.Rand) event.Facts {
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	names := event.Names()
	f := event.Facts{Name: names[random.IntN(len(names))], AgentID: pick("", "x", "y", "z"),
		CallID: pick("", "c", "d", "e"), QueueID: pick("", "q", "r")}

	if random.IntN(3) == 0 {
		f.State = event.State(
			pick("offline", "available", "ringing", "talking", "wrap_up", "break", "other", "waiting", "held", "ended"))
	}
	if random.IntN(8) == 0 {
		f.Contact = pick("1", "2")
	}

	if subjectOf(&f) == aboutAgent && random.IntN(2) == 0 {
		f.Agent = &event.AgentReport{Reason: pick("", "lunch")}
		switch random.IntN(3) {
		case 0:
			f.Agent.Presence = event.State(pick("", "available", "break", "offline", "other"))
			f.Agent.Activity = event.Activity(pick("", "none", "not_ready", "ringing", "talking", "wrap_up"))
		case 1:
			f.Agent.Device = event.Device(
				pick("idle", "ringing", "in_use", "busy", "wrap_up", "unreachable", "unknown"))
			f.Agent.InCall, f.Agent.Paused = random.IntN(3) == 0, random.IntN(3) == 0
		default:
			f.Agent.WrapUpUntilMS = firstMilli
		}
	}

	return f
}

// Whatever comes, agents and calls agree after each event, and the fold of the messages is
// the same as that of the events.
func TestAgentsAndCallsAgreeWhateverComes(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}

	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 34))
		p, messages := newPlayer(), newPlayer()
		for i := range 400 {
			if random.IntN(100) == 0 {
				p.now += int64((25 * time.Hour).Seconds()) // calls expire
			}

			facts := randomFacts(random)
			before := p.All()
			completed := p.play(facts)

			if wrong := contradiction(p.Partition); wrong != "" {
				t.Fatalf("seed %d, event %d, %+v (%+v): %s\nbefore: %s", seed, i, facts, facts.Agent, wrong,
					texts(before))
			}

			var read event.Facts // as a message has them
			if err := json.Unmarshal(completed.Append(nil), &read); err != nil {
				t.Fatal(err)
			}

			messages.FoldCompleted(&Event{ID: p.last, Account: "a", Timestamp: p.now, Facts: read})
			if got, want := texts(messages.All()), texts(p.All()); got != want {
				t.Fatalf("seed %d, event %d, %+v:\nthe fold of the messages %s\nof the events %s", seed, i, facts, got,
					want)
			}
		}
	}
}

func texts(entries []*Entry) (all string) {
	for _, e := range entries {
		all += string(e.Append(nil)) + "\n"
	}
	return all
}
