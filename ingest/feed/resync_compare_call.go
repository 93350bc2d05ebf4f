package feed

import (
	"trunkline/event"
	"trunkline/event/state"
)

// compareCall compares a call. It adds no outcome that the platform does not show: a caller
// of whom it only shows that it is in no queue any more has left it, whoever rang before.
func (c *comparison) compareCall(o Object, e *state.Entry) {
	facts := o.Facts
	facts.CallID = o.ID
	want, before := o.Facts.State, event.State("") // the states of the platform and of the entry

	if e != nil && e.State == event.Ended && o.Facts.QueueID == "" && e.Reason != event.ReasonResync {
		return // the call has left its queue and its leg continues, as after an event
	}

	if e != nil && e.State != event.Ended {
		before = e.State
		left := event.Facts{CallID: o.ID, QueueID: e.QueueID, State: event.Talking, InteractionID: facts.InteractionID}
		waits := before == event.Waiting || before == event.Ringing
		if e.IsLiveVisit() && o.Facts.QueueID == "" && want != "" && want != event.Ended && (o.NoQueue || waits) {
			c.addDifference(o.Account, event.NameQueueCallEnded, left)
			// The leg goes on, and is held there.
			if want == event.Held {
				c.addDifference(o.Account, event.NameCallHeld, facts)
			}
			return
		}

		// only its leg is known, or another queue
		if waitsIn(&o.Facts) && (!e.IsLiveVisit() || e.QueueID != o.Facts.QueueID) {
			if e.IsLiveVisit() {
				c.addDifference(o.Account, event.NameQueueCallEnded, left)
			}
			c.addVisitBegin(o, facts)
			before = event.Waiting
		}

		// The record names the call's queue as its events do, also where the snapshot does not show it.
		if facts.QueueID == "" {
			facts.QueueID = e.QueueID
		}
		if facts.AgentID == "" && want == before {
			facts.AgentID = e.AgentID
		}
	}

	// A platform that does not show the agent contradicts nobody.
	sameAgent := e == nil || o.Facts.AgentID == "" || o.Facts.AgentID == e.AgentID
	if want == before && sameAgent || want == "" && before != "" || want == event.Ended && before == "" {
		return
	}

	queued := facts.QueueID != ""
	if before == "" { // the call began while the feed was disconnected
		before = c.addCallBegin(o, facts, queued)
		if want == before || want == "" {
			return
		}
	}

	if queued && want == event.Talking && before != event.Held && facts.AgentID == "" {
		return // it does not show who answered
	}

	name := callEventName(want, before, queued)
	if name != "" {
		if want != event.Talking {
			facts.WaitMS = event.Millis{} // it has not been answered
		}
		c.addDifference(o.Account, name, facts)
	}
}

// waitsIn reports whether a call waits in a queue, by what the platform shows.
func waitsIn(f *event.Facts) bool {
	return f.QueueID != "" && (f.State == event.Waiting || f.State == event.Ringing)
}

// addCallBegin adds the begin of a call, and returns its state after it.
func (c *comparison) addCallBegin(o Object, facts event.Facts, queued bool) event.State {
	begun := facts
	begun.AgentID, begun.AgentName, begun.Reason, begun.State = "", "", "", event.Ringing
	if !queued {
		begun.AgentID, begun.AgentName = facts.AgentID, facts.AgentName
		c.addDifference(o.Account, event.NameCallCreated, begun)
		return event.Ringing
	}

	if o.Leg {
		leg := begun
		leg.QueueID, leg.TimestampMS, leg.WaitMS = "", enteredAt(&facts), event.Millis{}
		c.addDifference(o.Account, event.NameCallCreated, leg)
	}

	c.addVisitBegin(o, facts)
	return event.Waiting
}

// addVisitBegin adds the begin of a visit to a queue, in which the call waits.
func (c *comparison) addVisitBegin(o Object, facts event.Facts) {
	facts.AgentID, facts.AgentName, facts.Reason, facts.State = "", "", "", event.Waiting
	facts.TimestampMS, facts.WaitMS = enteredAt(&facts), event.Millis{}
	c.addDifference(o.Account, event.NameQueueCallEntered, facts)
}

// enteredAt returns when a call entered its queue, Unix milliseconds; 0: unknown.
func enteredAt(f *event.Facts) int64 {
	at := f.TimestampMS - f.WaitMS.Value
	if at > 0 {
		return at
	}
	return f.TimestampMS
}

// callEventName returns the name of the event that brings a call from one state to
// another.
func callEventName(to, from event.State, queued bool) event.Name {
	switch to {
	case event.Waiting:
		if from == event.Ringing {
			return event.NameOther // it does not show whether the agent let it ring
		}
		return event.NameQueueCallEntered
	case event.Ringing:
		if queued {
			return event.NameQueueCallOffered
		}
		return event.NameCallRinging
	case event.Talking:
		switch {
		case from == event.Held:
			return event.NameCallResumed
		case queued:
			return event.NameQueueCallAnswered
		}

		return event.NameCallAnswered
	case event.Held:
		return event.NameCallHeld
	case event.Ended:
		if queued {
			return event.NameQueueCallEnded
		}
		return event.NameCallEnded
	}

	return ""
}
