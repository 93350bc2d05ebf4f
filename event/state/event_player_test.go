package state

import (
	"fmt"
	"strings"

	"trunkline/event"
)

const firstMilli = 1_795_169_700_000

// player applies events of account a, a second apart, to a partition.
type player struct {
	*Partition
	last event.ID
	now  int64 // Unix seconds
}

func newPlayer() *player { return &player{Partition: NewPartition(), now: firstMilli / 1000} }

// play applies an event with the facts, and returns the facts as they were completed.
func (p *player) play(f event.Facts) event.Facts {
	p.now++
	p.last = event.NextID(p.last, p.now*1000, 3)
	e := Event{ID: p.last, Account: "a", Timestamp: p.now, Facts: f}
	p.CompleteAndFold(&e)
	return e.Facts
}

// shows returns the entries in short: "id state queues agent on-call since", since
// in seconds after the start.
func (p *player) shows() string {
	var lines []string
	for _, e := range p.All() {
		who := e.AgentID
		if e.Kind == Agent {
			who = e.CallID
		}

		parts := []string{e.ID, string(e.State), strings.Join(e.Queues, "+"), who,
			fmt.Sprint(e.Since - firstMilli/1000)}
		lines = append(lines, strings.Join(strings.Fields(strings.Join(parts, " ")), " "))
	}

	return strings.Join(lines, ", ")
}

func agentFacts(name event.Name, agent string, s event.State) event.Facts {
	return event.Facts{Name: name, AgentID: agent, State: s}
}

// atWork reports that the agent is at work, and not whether it is on a call.
func atWork(agent string) event.Facts {
	return event.Facts{Name: event.NameAgentState, AgentID: agent, Agent: &event.AgentReport{Presence: event.Available}}
}

func callFacts(name event.Name, call, agent string) event.Facts {
	return event.Facts{Name: name, CallID: call, AgentID: agent}
}
