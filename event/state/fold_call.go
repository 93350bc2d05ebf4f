package state

import (
	"slices"

	"trunkline/event"
)

// nextCall returns the event's call after it: a new entry, or call itself if the event
// does not change it; nil: none. call is its entry before the event.
func (e *Event) nextCall(call *Entry) *Entry {
	f := &e.Facts
	after := nextCallState(f, call)
	if f.CallID == "" || len(f.CallID) > maxTextBytes || after == "" {
		return nil
	}
	if call != nil && (call.EventID >= e.ID || call.endsFormerVisit(f)) {
		return call
	}

	if call != nil && call.State == event.Ended && after != event.Ended {
		call = reopened(f, call)
	}

	next := e.copyOrNew(Call, f.CallID, call)
	next.CallID = f.CallID
	now, oldState := e.EffectiveMillis(), next.State
	e.setState(&next, after)

	// That a comparison found it is no reason for the state of a call that goes on.
	if subjectOf(f) == aboutCall && (f.Reason != event.ReasonResync || after == event.Ended) {
		replaceUnlessEmpty(&next.Reason, f.Reason)
	}

	replaceUnlessEmpty(&next.QueueID, f.QueueID)
	replaceUnlessEmpty(&next.Caller, f.Caller)
	replaceUnlessEmpty(&next.Callee, f.Callee)
	replaceUnlessEmpty(&next.InteractionID, f.InteractionID)
	replaceUnlessEmpty(&next.OriginationCallID, f.OriginationCallID)
	next.LegOutlivesVisit = next.LegOutlivesVisit || isOfLeg(f)

	foldCallAgent(f, &next)
	foldVisit(f, &next, call, oldState, now)
	if after != event.Waiting && after != event.Ringing {
		next.Position = 0
	}
	if f.WaitMS.Known {
		next.WaitMS = f.WaitMS
	}
	if after == event.Ended && f.TalkMS.Known {
		next.TalkMS = f.TalkMS
	}

	return &next
}

// reopened returns what remains of an ended call that an event begins again; nil: nothing.
func reopened(f *event.Facts, call *Entry) *Entry {
	if f.Name != event.NameQueueCallEnded {
		return nil
	}
	leg := *call // it did not end: only its visit to the queue did
	leg.TalkMS = event.Millis{}
	return &leg
}

// isOfLeg reports whether an event is one of a leg, whose end has an event too.
func isOfLeg(f *event.Facts) bool {
	switch f.Name {
	case event.NameCallCreated, event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged:
		return f.AgentID == "" || f.Name == event.NameCallCreated
	}
	return false
}

// foldVisit updates the call's visit to a queue. before is its entry before the event,
// nil: none, or the call is a new one.
func foldVisit(f *event.Facts, next, before *Entry, oldState event.State, now int64) {
	visited := before != nil && before.IsLiveVisit()
	switch {
	case f.Name == event.NameQueueCallEntered:
		// A platform may report one entry in several events; after a talk it is another visit.
		if next.EnteredMS == 0 || oldState == event.Talking || oldState == event.Held {
			next.EnteredMS, next.AnsweredMS, next.WaitMS = now, 0, event.Millis{}
			next.Position = f.Position
		}
		return
	case f.Name == event.NameQueueCallEnded && next.State != event.Ended: // its leg goes on
		next.QueueID, next.EnteredMS, next.AnsweredMS = "", 0, 0
		return
	case visited && leavesQueue(f, before): // the next event says whether an agent answers
		next.QueueID = ""
		return
	case (f.Name == event.NameQueueCallOffered || f.Name == event.NameQueueCallAnswered) && next.EnteredMS == 0 &&
		next.QueueID != "":
		// No event has reported when the caller entered: it was before this event by the wait, if the event has one.
		next.EnteredMS = now - f.WaitMS.Value
	}

	if next.State == event.Talking && next.AnsweredMS == 0 && f.Name != event.NameAgentState {
		next.AnsweredMS = now
	}
}

// leavesQueue reports whether an event says that the caller waits no longer, and not
// whether an agent answers.
func leavesQueue(f *event.Facts, call *Entry) bool {
	return f.Name == event.NameOther && f.State == event.Talking &&
		(call.State == event.Waiting || call.State == event.Ringing)
}

// foldCallAgent sets the call's agent and the agents at whom it rings.
func foldCallAgent(f *event.Facts, call *Entry) {
	agent, name := emptyIfTooLong(f.AgentID), emptyIfTooLong(f.AgentName)
	switch {
	case call.State == event.Waiting:
		call.AgentID, call.AgentName, call.Ringing = "", "", nil
	case call.State == event.Ended:
		call.Ringing = nil
		// An agent at whom an abandoned call only rang has not had it.
		if call.AgentID == "" && f.Name != event.NameQueueCallAbandoned {
			call.AgentID, call.AgentName = agent, name
		}
	case f.Name == event.NameQueueCallEnded:
		call.AgentID, call.AgentName, call.Ringing = "", "", nil

	// see leavesQueue
	case f.Name == event.NameOther && f.State == event.Talking && call.EnteredMS != 0 && call.AnsweredMS == 0:
		call.AgentID, call.AgentName, call.Ringing = "", "", nil // events of the phones say which still ring
	case call.State == event.Ringing &&
		(f.Name == event.NameAgentNoAnswer || f.Name == event.NameOther && f.State == event.Waiting):
		call.Ringing = without(call.Ringing, agent)
		if call.AgentID == agent && len(call.Ringing) > 0 {
			call.AgentID, call.AgentName = call.Ringing[len(call.Ringing)-1], ""
		}
	case agent == "" || !assignsCallToAgent(f):
	case call.State == event.Ringing:
		if !slices.Contains(call.Ringing, agent) {
			ringing := make([]string, len(call.Ringing)+1)
			copy(ringing, call.Ringing)
			ringing[len(call.Ringing)] = agent
			call.Ringing = ringing
		}

		call.AgentID, call.AgentName = agent, name
	case f.Name != event.NameQueueCallOffered && f.Name != event.NameCallRinging:
		call.AgentID, call.AgentName, call.Ringing = agent, name, nil
	}

	if call.State == event.Ringing && len(call.Ringing) == 0 && call.AgentID != "" {
		call.Ringing = []string{call.AgentID}
	}
}

// without returns texts without one of them; the slice is new.
func without(texts []string, text string) []string {
	at := slices.Index(texts, text)
	switch {
	case at < 0:
		return texts
	case len(texts) == 1:
		return nil
	}
	return slices.Delete(slices.Clone(texts), at, at+1)
}
