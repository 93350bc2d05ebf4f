package state

import "trunkline/event"

// complete adds facts that follow from the state before the event, and returns the
// entries of its agent and its call; nil: none.
func (p *Partition) complete(e *Event) (agent, call *Entry) {
	f, account := &e.Facts, e.Account
	call = p.lookup(account, Call, f.CallID)
	if call != nil {
		completeCall(f, call)
	}
	agent = p.lookup(account, Agent, f.AgentID)
	if agent != nil {
		fill(&f.AgentName, agent.AgentName)
	}
	switch subjectOf(f) {
	case aboutAgent:
		var busyWith *Entry
		if agent != nil {
			busyWith = p.lookup(account, Call, agent.CallID)
		}
		completeAgent(f, agent, busyWith)
	case aboutCall:
		after := nextCallState(f, call)
		if f.State == "" {
			f.State = after
		}
		if call != nil {
			previous(f, call)
			durations(f, call, after, e.EffectiveMillis())
		}
	}
	return agent, call
}

// completeCall adds known facts of the event's call.
func completeCall(f *event.Facts, call *Entry) {
	fill(&f.QueueID, call.QueueID)
	fill(&f.Caller, call.Caller)
	fill(&f.Callee, call.Callee)
	fill(&f.InteractionID, call.InteractionID)
	fill(&f.OriginationCallID, call.OriginationCallID)
	switch f.Name {
	case event.NameQueueCallEntered:
	case event.NameCallCreated, event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged:
		// This is the caller's own channel: only the queue or the event itself can
		// tell that an agent has the call.
		if call.State == event.Talking || call.State == event.Held {
			fill(&f.AgentID, call.AgentID)
		}
	default:
		fill(&f.AgentID, call.AgentID)
	}
}

// completeAgent replaces the name by a more specific one that depends on the state
// before the event. call is the agent's call, nil: none.
func completeAgent(f *event.Facts, agent, call *Entry) {
	atWork := f.AtWork && agent != nil
	f.AtWork = false
	if f.Name == event.NameAgentState && agent != nil {
		switch {
		case f.State == event.Available && agent.State == event.Offline:
			f.Name = event.NameAgentLogin
		case f.State == event.Available && agent.State == event.Break:
			f.Name = event.NameAgentBreakEnd
		case f.State == event.Break && agent.State != event.Break && agent.State != "":
			f.Name = event.NameAgentBreakStart
		case f.State == event.Offline && agent.State != event.Offline && agent.State != "":
			f.Name = event.NameAgentLogout
		}
	}
	if atWork {
		completeAtWork(f, agent, call)
	}
	completeMembership(f, agent)
	if f.State == "" && f.Name != event.NameAgentQueueJoin && f.Name != event.NameAgentQueueLeave {
		f.State = nextAgentState(f, agent, nil).State
	}
	if agent != nil {
		previous(f, agent)
	}
}

// completeAtWork sets the state of an agent that is at work and has a call to the
// state for that call.
func completeAtWork(f *event.Facts, agent, call *Entry) {
	switch {
	case onCall(agent.State):
		f.State = agent.State
		switch agent.AfterCall {
		case event.Offline:
			f.Name = event.NameAgentLogin
		case event.Break:
			f.Name = event.NameAgentBreakEnd
		}
	case call == nil || call.AgentID != agent.ID:
	case call.State == event.Held:
		f.State = event.Talking
	case onCall(call.State):
		f.State = call.State
	}
}

// completeMembership finds logins and logouts on platforms whose only login is joining
// the first queue and whose only logout is leaving the last one: the facts contain the
// resulting state of the agent.
func completeMembership(f *event.Facts, agent *Entry) {
	switch {
	case f.Name == event.NameAgentQueueJoin && f.State != "" && agent != nil && agent.State == event.Offline:
		f.Name = event.NameAgentLogin
	case f.Name == event.NameAgentQueueLeave && f.State == event.Offline:
		if agent != nil && agent.State != event.Offline && len(agent.Queues) == 1 && agent.Queues[0] == f.QueueID {
			f.Name = event.NameAgentLogout
		} else {
			f.State = "" // it is still a member of others, or unknown
		}
	}
}

func previous(f *event.Facts, e *Entry) {
	if f.State != "" && f.PreviousState == "" && e.State != "" {
		f.PreviousState, f.PreviousSince = e.State, e.Since
	}
}

// durations adds the waiting and talking time of the call.
func durations(f *event.Facts, call *Entry, after event.State, now int64) {
	if call.State == event.Ended {
		return
	}
	waited := f.Name == event.NameQueueCallAnswered && call.AnsweredMS == 0 || f.Name == event.NameQueueCallAbandoned
	if waited && call.EnteredMS != 0 && !f.WaitMS.Known {
		f.WaitMS = between(call.EnteredMS, now)
	}
	if after == event.Ended && call.AnsweredMS != 0 && !f.TalkMS.Known {
		f.TalkMS = between(call.AnsweredMS, now)
	}
}

// between returns the duration between two times, one of which may have a resolution
// of seconds.
func between(from, to int64) event.Millis {
	if to < from && from-to < 1000 {
		to = from
	}
	return event.MillisOf(to - from)
}

func fill(text *string, known string) {
	if *text == "" {
		*text = known
	}
}
