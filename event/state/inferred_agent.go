package state

import "trunkline/event"

// InferredAgent is the state of an agent and the data on which its next state depends, for
// figures of messages without the fact agent_state, which servers before it wrote.
type InferredAgent struct {
	State event.State // "": unknown
	// Call is the call that rings at the agent or on which it talks. It remains set if
	// the agent logs out or begins a break during the call.
	Call string
	// AfterCall is the state of the agent after its current call; "": Available.
	AfterCall event.State
}

// AgentAfter returns the state of an agent after an event about it or about its call.
// anotherHasCall: the event's call is known and another agent has it. The result has the
// Call of before; KeepsCall reports whether it remains.
func AgentAfter(f *event.Facts, before InferredAgent, anotherHasCall bool) InferredAgent {
	after := before
	after.State = before.next(f, anotherHasCall)
	switch {
	case !onCall(after.State) &&
		!(after.State == event.WrapUp && (onCall(before.State) || before.State == event.WrapUp)),
		f.Name == event.NameAgentLogin, f.Name == event.NameAgentBreakEnd:
		after.AfterCall = ""
	case onCall(before.State):
	case before.Call != "" && before.Call == f.CallID: // logged out or on a break during this call
		after.AfterCall = before.State
	default:
		after.AfterCall = ""
	}

	return after
}

// KeepsCall reports whether an agent that neither rings nor talks after an event keeps
// its call: it has logged out or begun a break during the call.
func (a InferredAgent) KeepsCall(f *event.Facts, after event.State) bool {
	if a.Call == "" || after != event.Offline && after != event.Break {
		return false
	}

	switch f.Name {
	case event.NameAgentLogin, event.NameAgentBreakEnd, event.NameAgentState:
		return false
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded, event.NameCallEnded, event.NameConferenceLeft,
		event.NameAgentNoAnswer:
		return f.CallID != a.Call
	}

	return true
}

// StateAfterCall returns the state of the agent after its call has ended.
func (a InferredAgent) StateAfterCall() event.State {
	if a.AfterCall != "" {
		return a.AfterCall
	}
	return event.Available
}

// next returns the state after an event.
func (a InferredAgent) next(f *event.Facts, anotherHasCall bool) event.State {
	before := a.State
	switch f.Name {
	case event.NameAgentLogout:
		return event.Offline
	case event.NameAgentBreakStart:
		return event.Break
	case event.NameAgentLogin, event.NameAgentBreakEnd:
		if f.State != "" {
			return f.State
		}
		return event.Available
	case event.NameAgentQueueJoin, event.NameAgentQueueLeave:
		if f.State != "" {
			return f.State
		}
	case event.NameAgentState:
		switch {
		case f.State != "":
			return f.State
		case onCall(before), before == event.WrapUp:
			return a.StateAfterCall()
		}
	case event.NameAgentNoAnswer:
		switch {
		case agentOnly(f.State):
			return f.State
		case before == event.Ringing:
			return a.StateAfterCall()
		}
	case event.NameQueueCallOffered, event.NameCallRinging:
		if before != event.Talking {
			return event.Ringing
		}
	case event.NameQueueCallAnswered, event.NameCallAnswered, event.NameCallBridged:
		return event.Talking
	case event.NameCallTransferred:
		if anotherHasCall { // another agent transferred the call to this one
			return event.Talking
		}
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded, event.NameCallEnded, event.NameConferenceLeft:
		switch {
		case f.Name == event.NameConferenceLeft && f.State != event.Ended:
		case agentOnly(f.State):
			return f.State
		case onCall(before) && (a.Call == "" || a.Call == f.CallID):
			return a.StateAfterCall()
		}
	}

	return before
}
