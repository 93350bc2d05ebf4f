package snapshot

import (
	"time"

	"trunkline/event"
)

// Message is one message of the normalized topic.
type Message struct {
	ID        event.ID
	Account   string
	Type      event.Type
	Format    string // of the raw record
	Queue     string // as the message's metadata name it; "": none
	Timestamp int64  // Unix seconds, when it happened
	Data      []byte // the source's event, a JSON object; read, never kept
}

// Key names an agent or a call: the source's own id, within its account.
type Key struct{ Account, ID string }

// Agent is one agent who is at work.
type Agent struct {
	Key
	State, Status string   // the source's words; "" what it has not said
	Since         int64    // Unix seconds, when state or status last became another
	LastMessage   event.ID // the last message about it
}

// CallState is the state of a call.
type CallState string

// The states of a call.
const (
	Waiting  CallState = "waiting"  // in the queue
	Offering CallState = "offering" // an agent's phone rings
	Answered CallState = "answered" // an agent talks
)

// Call is one call that has not ended.
type Call struct {
	Key
	Queue       string // "": not said
	Agent       string // whom it is offered to or who answered; "": nobody, or not said
	State       CallState
	Since       int64    // Unix seconds, when it came into this state
	LastMessage event.ID // the last message about it
}

// Config bounds a state; every bound is above 0.
type Config struct {
	AgentAge   time.Duration // an agent not heard of for so long is forgotten
	CallAge    time.Duration // and a call
	PerAccount int           // most agents of one account, and most calls
	Budget     *Budget       // of the memory of all states
}

// State holds the agents and calls after the messages applied so far.
type State struct {
	agents expiringMap[Agent]
	calls  expiringMap[Call]
	memory *memory
}

// New creates an empty state. The caller must call Release when done.
func New(cfg Config) *State {
	m := &memory{budget: cfg.Budget}
	m.budget.states.Add(1)
	return &State{
		agents: newExpiringMap[Agent](cfg.AgentAge, cfg.PerAccount, m),
		calls:  newExpiringMap[Call](cfg.CallAge, cfg.PerAccount, m),
		memory: m,
	}
}

// Release gives back what the state uses of its budget. The state must not be used afterwards.
func (f *State) Release() {
	f.memory.used = 0
	f.memory.settle()
	f.memory.budget.states.Add(-1)
}

// enforceBudget drops the least recent entries until the state is within the
// budget.
func (f *State) enforceBudget() {
	for !f.memory.settle() {
		agent, anyAgent := f.agents.oldest()
		call, anyCall := f.calls.oldest()
		switch {
		case anyAgent && (!anyCall || agent <= call):
			f.agents.dropOldest()
		case anyCall:
			f.calls.dropOldest()
		default:
			return
		}
	}
}

// IsRelevant reports whether messages of the type can change a state.
func IsRelevant(t event.Type) bool {
	switch t {
	case event.QueueCall, event.AgentState, event.AgentLogin, event.AgentLogout, event.AgentStatus,
		event.AgentCallStart, event.AgentCallEnd, event.AgentBreakStart, event.AgentBreakEnd, event.AgentTransfer:
		return true
	}
	return false
}

// Apply applies the next message.
func (f *State) Apply(m Message) {
	if !IsRelevant(m.Type) {
		return
	}
	said := read(&m)
	f.agents.expire(m.ID)
	f.calls.expire(m.ID)
	f.agent(&m, said.agent)
	f.call(&m, said.call)
	f.enforceBudget()
}

func (f *State) agent(m *Message, said agentUpdate) {
	key := Key{m.Account, said.id}
	switch {
	case said.id == "":
		return
	case said.loggedOut:
		f.agents.end(key, m.ID)
		return
	case said.state == "" && said.status == "", said.keepsLogout && f.agents.hasEnded(key):
		return
	}
	a, fresh := f.agents.touch(key, m.ID)
	if fresh {
		a.Key = key
	}
	was := *a
	a.LastMessage = m.ID
	if said.state != "" {
		a.State = said.state
	}
	if said.status != "" {
		a.Status = said.status
	}
	if a.State != was.State || a.Status != was.Status {
		a.Since = m.Timestamp
	}
	f.agents.resize(key, len(a.State)+len(a.Status))
}

func (f *State) call(m *Message, said callUpdate) {
	if said.id == "" {
		return
	}
	key := Key{m.Account, said.id}
	known := f.calls.find(key)
	if said.ended {
		if said.endedBy == "" || known != nil && (known.Agent == "" || known.Agent == said.endedBy) {
			f.calls.end(key, m.ID)
		}
		return
	}
	if known == nil && (said.state == "" || !said.reopens && f.calls.hasEnded(key)) {
		return
	}
	c, fresh := f.calls.touch(key, m.ID)
	if fresh {
		c.Key = key
	}
	c.LastMessage = m.ID
	if said.state != "" && said.state != c.State {
		c.State, c.Since = said.state, m.Timestamp
	}
	if said.queue != "" {
		c.Queue = said.queue
	}
	if said.agent != "" || said.state == Waiting {
		c.Agent = said.agent
	}
	f.calls.resize(key, len(c.Queue)+len(c.Agent))
}

// Sizes returns the numbers of agents and calls, and of entries dropped since
// New for lack of memory.
func (f *State) Sizes() (agents, calls, dropped int) {
	return f.agents.size(), f.calls.size(), f.agents.dropped + f.calls.dropped
}
