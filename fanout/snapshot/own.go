package snapshot

import (
	"trunkline/event"
	"trunkline/internal/jsonscan"
)

// A body of svc.cc has its fields at the top, a generic
// event in data, where the source has put them; either may be spelt both ways.
var ownKeys = func() jsonscan.Keys {
	keys := bothSpellings("Agent-ID", "To-Agent-ID", "Agent-State", "Agent-Status", "Call-ID", "Event",
		"CDR", "Customer-Info", "History", "Data")
	keys["state"], keys["State"] = ownState, ownState
	keys["status"], keys["Status"] = ownStatus, ownStatus
	return keys
}()

const (
	ownAgent = iota
	ownToAgent
	ownState
	ownStatus
	ownCall
	ownEvent
	ownCDR
	ownCustomer
	ownHistory
	ownData
	ownFields
)

type ownValues [ownFields]jsonscan.Value

func readOwn(m *Message) (s update) {
	var f ownValues
	if ownKeys.Scan(m.Data, f[:]) != nil {
		return update{}
	}
	if m.Format == "generic" {
		within(f[ownData], ownKeys, f[:])
	}
	if m.Type == event.QueueCall {
		return update{call: f.call()}
	}
	state, status := text(f[ownState]), text(f[ownStatus])
	s.agent = agentUpdate{id: text(f[ownAgent]), state: state, status: status}
	call := callUpdate{id: text(f[ownCall])}
	switch m.Type {
	case event.AgentLogin, event.AgentBreakEnd:
		s.agent.status = textOr(status, "logged_in")
	case event.AgentLogout:
		s.agent.loggedOut = true
	case event.AgentBreakStart:
		s.agent.status = textOr(status, "on_break")
	case event.AgentCallStart:
		s.agent.state = textOr(state, "on_call")
		call.state, call.reopens, call.agent = Answered, true, s.agent.id
		s.call = call
	case event.AgentCallEnd:
		s.agent.state = textOr(state, "after_call")
		call.ended, call.endedBy = true, s.agent.id
		s.call = call
	case event.AgentTransfer:
		call.agent = text(f[ownToAgent])
		return update{call: call}
	default:
		s.agent.loggedOut = isLoggedOut(state) || isLoggedOut(status)
	}
	return s
}

func textOr(word, otherwise string) string {
	if word == "" {
		return otherwise
	}
	return word
}

var (
	cdrKeys      = bothSpellings("Call-ID", "Event")
	customerKeys = jsonscan.KeysOf("customer_uuid")
	historyKeys  = jsonscan.KeysOf("type", "ext", "event")
)

// call reads the call event of svc.cc. The call's word is the CDR's
// event, else the last one of its history, which also says who the agent is.
func (f *ownValues) call() (c callUpdate) {
	var cdr [2]jsonscan.Value
	within(f[ownCDR], cdrKeys, cdr[:])
	var customer [1]jsonscan.Value
	within(f[ownCustomer], customerKeys, customer[:])
	var last [3]jsonscan.Value
	within(f[ownHistory].Last(), historyKeys, last[:])

	c = callUpdate{id: first(cdr[0], f[ownCall], customer[0])}
	for _, word := range []jsonscan.Value{cdr[1], f[ownEvent], f[ownState], last[2]} {
		if step, ok := transitionOf(text(word)); ok {
			c.apply(step)
			break
		}
	}
	if c.state == Waiting {
		return c
	}
	if c.agent = text(f[ownAgent]); c.agent == "" && last[0].Is("agent") {
		c.agent = text(last[1])
	}
	return c
}
