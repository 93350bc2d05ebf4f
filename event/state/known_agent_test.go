package state

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"trunkline/event"
)

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
				Agent: &event.AgentReport{Device: event.DeviceIdle}}, "available"},
		"offline": {`"state":"offline"`, event.Facts{Name: event.NameAgentState, AgentID: "x"}, "offline"},
		"a call that ends": {`"state":"talking","call_id":"c"`, callFacts(event.NameQueueCallEnded, "c", "x"),
			"available"},
		"a break afterwards": {`"state":"talking","call_id":"c","after_call":"break"`,
			callFacts(event.NameQueueCallEnded, "c", "x"), "break"},
		"another call": {`"state":"talking","call_id":"c"`, callFacts(event.NameQueueCallEnded, "d", "x"),
			"talking"},
		"wrap-up": {`"state":"wrap_up"`, event.Facts{Name: event.NameAgentState, AgentID: "x"}, "available"},
		"a state": {`"state":"ringing"`, event.Facts{Name: event.NameAgentState, AgentID: "x"}, "available"},
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
