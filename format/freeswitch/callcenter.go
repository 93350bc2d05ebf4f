package freeswitch

import (
	"trunkline/event"
	"trunkline/format"
)

// callcenter is the format of mod_callcenter's CUSTOM event callcenter::info.
var callcenter = format.Format{
	Name: "freeswitch.callcenter", Topic: event.TopicRaw, Encodings: plainEncoding, Keys: eventKeys,
	Account: account, Event: readEvent,
}

// callcenterType returns the type of an event by its CC-Action. An agent that
// becomes Available may have logged in or come back from a break, which only the
// event before it says; so that is an agent state event.
func callcenterType(action, status string) event.Type {
	switch action {
	case "agent-status-change":
		switch status {
		case "Logged Out":
			return event.AgentLogout
		case "On Break":
			return event.AgentBreakStart
		}
		return event.AgentState
	case "agent-state-change", "agent-max-no-answer":
		return event.AgentState
	case "agent-offering", "bridge-agent-start", "bridge-agent-end", "bridge-agent-fail",
		"member-queue-start", "member-queue-resume", "member-queue-end":
		return event.QueueCall
	}
	return event.Custom // agent-add, agent-contact-change, members-count: no call, no state
}
