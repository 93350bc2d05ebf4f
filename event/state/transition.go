package state

import "trunkline/event"

// onCall reports whether the agent is busy with a call.
func onCall(s event.State) bool { return s == event.Ringing || s == event.Talking }

// nextAgentState returns the state of an agent after an event about it or about its
// call; "" where nothing is known of it. agent and call are the entries before,
// nil: none.
func nextAgentState(f *event.Facts, agent, call *Entry) event.State {
	var before event.State
	busyWith := ""
	if agent != nil {
		before, busyWith = agent.State, agent.CallID
	}
	return AgentAfter(f, before, busyWith, call != nil && call.AgentID != f.AgentID)
}

// AgentAfter returns the state of an agent after an event about it or about its
// call; "" where nothing is known of it. before is its state before, busyWith the
// call that it rings for or talks on, ofAnother says that the event's call is known
// and another agent has it.
func AgentAfter(f *event.Facts, before event.State, busyWith string, ofAnother bool) event.State {
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
			return event.Available
		}
	case event.NameAgentNoAnswer:
		switch {
		case agentOnly(f.State):
			return f.State
		case before == event.Ringing:
			return event.Available
		}
	case event.NameQueueCallOffered, event.NameCallRinging:
		if before != event.Talking {
			return event.Ringing
		}
	case event.NameQueueCallAnswered, event.NameCallAnswered, event.NameCallBridged:
		return event.Talking
	case event.NameCallTransferred:
		if ofAnother { // it was given to this agent
			return event.Talking
		}
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded, event.NameCallEnded, event.NameConferenceLeft:
		switch {
		case f.Name == event.NameConferenceLeft && f.State != event.Ended:
		case agentOnly(f.State):
			return f.State
		case onCall(before) && (busyWith == "" || busyWith == f.CallID):
			return event.Available
		}
	}
	return before
}

// agentOnly reports whether only an agent can be in the state, not a call.
func agentOnly(s event.State) bool {
	switch s {
	case event.Offline, event.Available, event.WrapUp, event.Break, event.OtherState:
		return true
	}
	return false
}

// reopens reports whether an event begins a call that has ended anew.
func reopens(f *event.Facts) bool {
	return f.Name == event.NameQueueCallEntered || f.Name == event.NameCallCreated || f.Name == event.NameCallAnswered && f.AgentID != ""
}

// callAfter returns the state of the event's call after it; "" where nothing is
// known of it. call is its entry before, nil: none.
func callAfter(f *event.Facts, call *Entry) event.State {
	var before event.State
	if call != nil {
		before = call.State
	}
	if before == event.Ended {
		if !reopens(f) {
			return event.Ended
		}
		call, before = nil, ""
	}
	talking := before == event.Talking || before == event.Held
	queued := !talking && call != nil && call.QueueID != ""
	switch f.Name {
	case event.NameQueueCallEntered:
		return event.Waiting
	case event.NameQueueCallOffered:
		if !talking {
			return event.Ringing
		}
	case event.NameCallCreated:
		switch {
		case before != "":
		case f.State == event.Talking:
			return event.Talking
		default:
			return event.Ringing
		}
	case event.NameCallRinging:
		if !talking && !queued {
			return event.Ringing
		}
	case event.NameCallAnswered, event.NameCallBridged:
		if !queued || f.AgentID != "" {
			return event.Talking
		}
	case event.NameQueueCallAnswered, event.NameCallResumed:
		return event.Talking
	case event.NameCallHeld:
		return event.Held
	case event.NameAgentNoAnswer:
		if before == event.Ringing {
			return event.Waiting
		}
	case event.NameCallEnded:
		// An agent that has handed the call on ends it for itself alone.
		if f.AgentID == "" || call == nil || call.AgentID == "" || call.AgentID == f.AgentID {
			return event.Ended
		}
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded:
		return event.Ended
	case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd, event.NameAgentState,
		event.NameAgentQueueJoin, event.NameAgentQueueLeave, event.NameCallTransferred, event.NameCallDTMF:
	default:
		if before != "" && callOnly(f.State) {
			return f.State
		}
	}
	return before
}

// callOnly reports whether a state is one that a call can be in.
func callOnly(s event.State) bool {
	switch s {
	case event.Waiting, event.Ringing, event.Talking, event.Held, event.Ended:
		return true
	}
	return false
}
