package normalizer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// AgentFold is the state of agents as anybody can compute it from the JSON of messages
// that say login, logout or break: it shares no code with package event/state.
type AgentFold struct {
	states map[string]string
	newest string
	wrong  []string // messages whose previous_state is not the state before them
}

// Include folds the value of a record of cc.evt. A repeated message changes nothing.
func (f *AgentFold) Include(value []byte) error {
	var m struct {
		ID       string
		Metadata struct {
			Facts struct {
				Name          string
				AgentID       string `json:"agent_id"`
				PreviousState string `json:"previous_state"`
			}
		}
	}
	if err := json.Unmarshal(value, &m); err != nil {
		return err
	}

	if m.ID <= f.newest {
		return nil
	}

	f.newest = m.ID
	facts := m.Metadata.Facts
	after, ok := map[string]string{"agent.login": "available", "agent.logout": "offline",
		"agent.break_start": "break"}[facts.Name]
	if !ok {
		return fmt.Errorf("%q is no event of this test", facts.Name)
	}
	if f.states == nil {
		f.states = map[string]string{}
	}

	if facts.PreviousState != f.states[facts.AgentID] {
		f.wrong = append(f.wrong,
			fmt.Sprintf("%s: previous_state %q of agent %s, want %q", m.ID, facts.PreviousState, facts.AgentID,
				f.states[facts.AgentID]))
	}

	f.states[facts.AgentID] = after
	return nil
}

// Wrong returns the messages whose facts were completed from another state.
func (f *AgentFold) Wrong() []string { return f.wrong }

// String returns the agents and their states, in lines.
func (f *AgentFold) String() string {
	var b strings.Builder
	for _, agent := range slices.Sorted(maps.Keys(f.states)) {
		fmt.Fprintf(&b, "%s %s\n", agent, f.states[agent])
	}
	return b.String()
}

// AgentRecords is the last record of each agent on cc.state: what compaction leaves.
type AgentRecords struct{ states map[string]string }

// Include takes the next record of cc.state.
func (a *AgentRecords) Include(key, value []byte) error {
	parts := strings.Split(string(key), "|")
	if len(parts) != 3 || parts[1] != "agent" {
		return nil
	}
	if a.states == nil {
		a.states = map[string]string{}
	}
	if value == nil {
		delete(a.states, parts[2])
		return nil
	}

	var e struct{ State string }
	if err := json.Unmarshal(value, &e); err != nil {
		return err
	}

	a.states[parts[2]] = e.State
	return nil
}

// String returns the agents and their states as AgentFold does.
func (a *AgentRecords) String() string { return (&AgentFold{states: a.states}).String() }
