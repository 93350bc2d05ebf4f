package state

import "trunkline/event"

// onCall reports whether the agent is busy with a call.
func onCall(s event.State) bool { return s == event.Ringing || s == event.Talking }

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
	queued := !talking && call != nil && call.IsLiveVisit()
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
		// Some platforms report the offer of a call only as the state of the agent (package kazoo).
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
		if !talking || !call.LegOutlivesVisit || call.EnteredMS != 0 { // else its visit has ended before
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
// its own end where one is known, unless the event reports that it has ended.
func afterVisit(f *event.Facts, call *Entry, talking bool) event.State {
	switch {
	case f.State == event.Talking, f.State == event.Held:
		return f.State
	case f.State == "" && talking && call.LegOutlivesVisit:
		return call.State
	case f.State == "" && call != nil && call.LegOutlivesVisit:
		return event.Talking
	}
	return event.Ended
}

// endsFormerVisit reports whether an event ends a visit to a queue that the call has left for another
// queue, or entered again: where two threads of a switch report the end and the next begin, either is
// first. A visit that nobody has answered has no talk.
func (e *Entry) endsFormerVisit(f *event.Facts) bool {
	if f.Name != event.NameQueueCallEnded || !e.IsLiveVisit() {
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
