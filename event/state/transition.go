package state

import "trunkline/event"

// onCall reports whether the agent is busy with a call.
func onCall(s event.State) bool { return s == event.Ringing || s == event.Talking }

// AgentState is the state of an agent and the data on which its next state depends, for
// figures of messages without the fact agent_state, which servers before it wrote.
type AgentState struct {
	State event.State // "": unknown
	// Call is the call that rings at the agent or on which it talks. It remains set if
	// the agent logs out or begins a break during the call.
	Call string
	// AfterCall is the state of the agent after its current call; "": Available.
	AfterCall event.State
}

// AgentAfter returns the state of an agent after an event about it or about its call.
// ofAnother: the event's call is known and another agent has it. The result has the
// Call of before; KeepsCall reports whether it remains.
func AgentAfter(f *event.Facts, before AgentState, ofAnother bool) AgentState {
	after := before
	after.State = before.next(f, ofAnother)
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
func (a AgentState) KeepsCall(f *event.Facts, after event.State) bool {
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

// Free returns the state of the agent after its call has ended.
func (a AgentState) Free() event.State {
	if a.AfterCall != "" {
		return a.AfterCall
	}
	return event.Available
}

// next returns the state after an event.
func (a AgentState) next(f *event.Facts, ofAnother bool) event.State {
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
			return a.Free()
		}
	case event.NameAgentNoAnswer:
		switch {
		case agentOnly(f.State):
			return f.State
		case before == event.Ringing:
			return a.Free()
		}
	case event.NameQueueCallOffered, event.NameCallRinging:
		if before != event.Talking {
			return event.Ringing
		}
	case event.NameQueueCallAnswered, event.NameCallAnswered, event.NameCallBridged:
		return event.Talking
	case event.NameCallTransferred:
		if ofAnother { // another agent transferred the call to this one
			return event.Talking
		}
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded, event.NameCallEnded, event.NameConferenceLeft:
		switch {
		case f.Name == event.NameConferenceLeft && f.State != event.Ended:
		case agentOnly(f.State):
			return f.State
		case onCall(before) && (a.Call == "" || a.Call == f.CallID):
			return a.Free()
		}
	}

	return before
}

// agentOnly reports whether the state exists for agents only, not for calls.
func agentOnly(s event.State) bool {
	switch s {
	case event.Offline, event.Available, event.WrapUp, event.Break, event.OtherState:
		return true
	}
	return false
}

// reopens reports whether an event reopens an ended call.
func reopens(f *event.Facts) bool {
	switch f.Name {
	case event.NameQueueCallEntered, event.NameCallCreated:
		return true
	case event.NameCallAnswered:
		return f.AgentID != ""
	}
	return f.Name == event.NameQueueCallEnded && f.State == event.Talking // only its visit to the queue has ended
}

// nextCallState returns the state of the event's call after it; "" if unknown. call is its
// entry before, nil: none.
func nextCallState(f *event.Facts, call *Entry) event.State {
	var before event.State
	if call != nil {
		before = call.State
	}

	if before == event.Ended {
		switch {
		case !reopens(f):
			return event.Ended
		case f.Name == event.NameQueueCallEnded:
			return f.State
		}

		// What follows is about a new call under the same id.
		call, before = nil, ""
	}

	talking := before == event.Talking || before == event.Held
	queued := !talking && call != nil && call.IsVisit()
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
		// The channel of a caller who waits was answered by the queue.
		if !queued || f.AgentID != "" {
			return event.Talking
		}
	case event.NameQueueCallAnswered, event.NameCallResumed:
		return event.Talking
	case event.NameCallHeld:
		return event.Held
	case event.NameAgentNoAnswer:
		return afterOffer(f, call, before)
	case event.NameAgentState:
		// Some platforms tell the offer of a call only as the state of the agent (package kazoo).
		if f.Agent == nil && f.AgentID != "" && onCall(f.State) &&
			(before == event.Waiting || before == event.Ringing) {
			return f.State
		}
	case event.NameCallEnded:
		// An agent that has passed the call on only ends its own part.
		if f.AgentID == "" || call == nil || call.AgentID == "" || call.AgentID == f.AgentID {
			return event.Ended
		}
	case event.NameQueueCallAbandoned:
		if !talking || !call.LegKnown || call.EnteredMS != 0 { // else its visit has ended before
			return event.Ended
		}
	case event.NameQueueCallEnded:
		return afterVisit(f, call, talking)
	case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd,
		event.NameAgentQueueJoin, event.NameAgentQueueLeave, event.NameCallTransferred, event.NameCallDTMF:
	default:
		switch {
		case before == "" || !callOnly(f.State):
		case f.State == event.Waiting && before == event.Ringing && f.Reason != event.ReasonResync:
			return afterOffer(f, call, before)
		case f.State == event.Waiting && talking && call.AgentID != f.AgentID: // another agent has it
		case f.State == event.Ringing && talking: // late
		default:
			return f.State
		}
	}

	return before
}

// afterOffer returns the state of a call after an agent did not take it: it may ring at
// others.
func afterOffer(f *event.Facts, call *Entry, before event.State) event.State {
	if before == event.Ringing && len(without(call.Ringing, f.AgentID)) == 0 {
		return event.Waiting
	}
	return before
}

// afterVisit returns the state of a call after its visit to a queue: the leg goes on to
// its own end where one is known, unless the event says that it has ended.
func afterVisit(f *event.Facts, call *Entry, talking bool) event.State {
	switch {
	case f.State == event.Talking, f.State == event.Held:
		return f.State
	case f.State == "" && talking && call.LegKnown:
		return call.State
	case f.State == "" && call != nil && call.LegKnown:
		return event.Talking
	}
	return event.Ended
}

// endsFormerVisit reports whether an event ends a visit to a queue that the call has left for another
// queue, or entered again: where two threads of a switch tell the end and the next begin, either is
// first. A visit that nobody has answered has no talk to tell of.
func (e *Entry) endsFormerVisit(f *event.Facts) bool {
	if f.Name != event.NameQueueCallEnded || !e.IsVisit() {
		return false
	}
	waits := e.State == event.Waiting || e.State == event.Ringing
	return f.QueueID != "" && f.QueueID != e.QueueID || waits && f.TalkMS.Known && f.State != event.Ended
}

// callOnly reports whether the state exists for calls.
func callOnly(s event.State) bool {
	switch s {
	case event.Waiting, event.Ringing, event.Talking, event.Held, event.Ended:
		return true
	}
	return false
}
