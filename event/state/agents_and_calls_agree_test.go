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
		f.Agent = &event.AgentSaid{Reason: pick("", "lunch")}
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

			said := randomFacts(random)
			before := p.All()
			completed := p.play(said)

			if wrong := contradiction(p.Partition); wrong != "" {
				t.Fatalf("seed %d, event %d, %+v (%+v): %s\nbefore: %s", seed, i, said, said.Agent, wrong,
					texts(before))
			}

			var read event.Facts // as a message has them
			if err := json.Unmarshal(completed.Append(nil), &read); err != nil {
				t.Fatal(err)
			}

			messages.Fold(&Event{ID: p.last, Account: "a", Timestamp: p.now, Facts: read})
			if got, want := texts(messages.All()), texts(p.All()); got != want {
				t.Fatalf("seed %d, event %d, %+v:\nthe fold of the messages %s\nof the events %s", seed, i, said, got,
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

// An entry is read as it is written, with all that is known.
func TestWhatIsKnownIsReadAsItIsWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 34))
	p := newPlayer()
	for range 500 {
		p.play(randomFacts(random))
	}

	for _, e := range p.All() {
		record, err := ParseRecord(e.Key().String(), e.Append(nil), nil)
		if err != nil || !same(record.Entry, e) {
			t.Errorf("%s is read as %+v, %v", e.Append(nil), record.Entry, err)
		}

		if size := e.estimatedSize(); size < len(e.Append(nil))+len(e.Key().String()) {
			t.Errorf("%s is estimated as %d bytes", e.Append(nil), size)
		}
	}
}

// Entries of a server before facts were held side by side have no KnownAgent.
func TestAgentsOfAnOlderServerGoOn(t *testing.T) {
	for name, c := range map[string]struct {
		agent string // members of its entry
		facts event.Facts
		want  string
	}{
		"on a break, which a status ends": {`"state":"break"`, atWork("x"), "available"},
		"on a break, which a queue ends": {`"state":"break","queues":["q"]`,
			event.Facts{Name: event.NameAgentBreakEnd, AgentID: "x", QueueID: "q",
				Agent: &event.AgentSaid{Device: event.DeviceIdle}}, "available"},
		"offline": {`"state":"offline"`, event.Facts{Name: event.NameAgentState, AgentID: "x"}, "offline"},
		"a call that ends": {`"state":"talking","call_id":"c"`, callFacts(event.NameQueueCallEnded, "c", "x"),
			"available"},
		"a break afterwards": {`"state":"talking","call_id":"c","after_call":"break"`,
			callFacts(event.NameQueueCallEnded, "c", "x"), "break"},
		"another call": {`"state":"talking","call_id":"c"`, callFacts(event.NameQueueCallEnded, "d", "x"),
			"talking"},
		"wrap-up": {`"state":"wrap_up"`, event.Facts{Name: event.NameAgentState, AgentID: "x"}, "available"},
		"a word":  {`"state":"ringing"`, event.Facts{Name: event.NameAgentState, AgentID: "x"}, "available"},
	} {
		v := NewView()
		at := event.NextID(0, firstMilli-1000, 3)
		for key, value := range map[string]string{
			"a|agent|x": fmt.Sprintf(
				`{"account_id":"a","kind":"agent","id":"x","event_id":"%s","since":1,"name":"agent.state","agent_id":"x",%s}`,
				at, c.agent),
			"a|call|c": fmt.Sprintf(
				`{"account_id":"a","kind":"call","id":"c","event_id":"%s","since":1,"name":"queue.call_answered","agent_id":"x","queue_id":"q","call_id":"c","state":"talking","entered_ms":5,"answered_ms":7}`,
				at),
			"a|call|d": fmt.Sprintf(
				`{"account_id":"a","kind":"call","id":"d","event_id":"%s","since":1,"name":"queue.call_entered","queue_id":"q","call_id":"d","state":"waiting","entered_ms":5}`,
				at),
		} {
			r, err := ParseRecord(key, []byte(value), nil)
			if err != nil {
				t.Fatal(err)
			}
			v.Apply(r)
		}

		v.Apply(Record{Position: &Position{EventID: at}})
		p := newPlayer()
		p.Load(v)
		p.play(c.facts)

		if got := p.Find(Key{"a", Agent, "x"}); string(got.State) != c.want {
			t.Errorf("%s: %s", name, got.Append(nil))
		}
	}
}
