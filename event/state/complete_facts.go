package state

import "trunkline/event"

// complete adds facts that follow from the state before the event, and returns the
// entries of its agent and its call; nil: none.
func (p *Partition) complete(e *Event) (agent, call *Entry) {
	f, account := &e.Facts, e.Account
	call = p.lookup(account, Call, f.CallID)
	// Before the agent is looked up, since the call may show which one it is.
	if e.IsLegOf != nil {
		p.completeAgentLeg(e)
	}
	if call != nil {
		completeCall(f, call)
	}

	agent = p.lookup(account, Agent, f.AgentID)
	// The platform spoke of it by its other id: from here on it has its own.
	if agent != nil && agent.KnownAgent != nil && agent.KnownAgent.SameAs != "" {
		f.AgentID = agent.KnownAgent.SameAs
		agent = p.lookup(account, Agent, f.AgentID)
	}
	if agent != nil {
		setIfEmpty(&f.AgentName, agent.AgentName)
	}

	switch subjectOf(f) {
	case aboutAgent:
		e.completeAgent(agent, call)
	case aboutCall:
		after := nextCallState(f, call)
		if f.State == "" {
			f.State = after
		}
		if call != nil {
			addPrevious(f, call)
			addDurations(f, call, after, e.EffectiveMillis())
		}
	case aboutDevice:
		p.completeDevice(e)
	}

	return agent, call
}

// completeAgentLeg adds the agent to the answer of its own leg, if the caller's call rings at
// it in a queue. The interaction is the caller's leg.
func (p *Partition) completeAgentLeg(e *Event) {
	f := &e.Facts
	if f.Name != event.NameCallAnswered || f.AgentID != "" || f.InteractionID == f.CallID {
		return
	}

	caller := p.lookup(e.Account, Call, f.InteractionID)
	if caller == nil || !caller.IsLiveVisit() {
		return
	}

	for _, agent := range caller.Ringing {
		if e.IsLegOf(agent) {
			f.AgentID = agent
			setIfEmpty(&f.QueueID, caller.QueueID)
			return
		}
	}
}

// completeCall adds known facts of the event's call.
func completeCall(f *event.Facts, call *Entry) {
	setIfEmpty(&f.QueueID, call.QueueID)
	setIfEmpty(&f.Caller, call.Caller)
	setIfEmpty(&f.Callee, call.Callee)
	setIfEmpty(&f.InteractionID, call.InteractionID)
	setIfEmpty(&f.OriginationCallID, call.OriginationCallID)

	switch f.Name {
	case event.NameQueueCallEntered:
	case event.NameCallCreated, event.NameCallRinging, event.NameCallAnswered, event.NameCallBridged:
		// This is the caller's own channel: only the queue or the event itself can
		// tell that an agent has the call.
		if call.State == event.Talking || call.State == event.Held {
			setIfEmpty(&f.AgentID, call.AgentID)
		}
	default:
		setIfEmpty(&f.AgentID, call.AgentID)
	}
}

// completeAgent replaces the name by a more specific one that depends on the state
// before the event, and adds the state after it.
func (e *Event) completeAgent(agent, call *Entry) {
	f := &e.Facts
	completePresence(f, agent)
	completeMembership(f, agent)

	var after *Entry
	if changesAgentsCall(f) {
		after = e.nextCall(call)
	}

	_, shows := e.nextAgent(agent, after)
	switch {
	case f.Agent != nil && f.Agent.Device != "":
		completePause(f, agent, shows.state)
		f.State = shows.state
	case f.Agent != nil:
		f.State = shows.state
	case f.State == "" && (f.Name == event.NameAgentState || f.Name == event.NameAgentNoAnswer):
		f.State, f.AgentState = shows.state, shows.state // it follows, and was not reported: see KnownAgent.applyReport
	case f.State == "" && f.Name != event.NameAgentQueueJoin && f.Name != event.NameAgentQueueLeave:
		f.State = shows.state
	case f.Name != event.NameAgentNoAnswer && f.State != shows.state:
		f.AgentState = shows.state
	}

	if agent != nil {
		addPrevious(f, agent)
	}
}

// completePresence names a login, a logout and a break, which are reported by the
// state that follows them.
func completePresence(f *event.Facts, agent *Entry) {
	if f.Name != event.NameAgentState || agent == nil {
		return
	}

	reported, before := f.State, agent.WhatIsKnown().Presence
	if f.Agent != nil {
		reported = f.Agent.Presence
	}
	if before == "" {
		before = agent.State
	}

	switch {
	case reported == event.Available && before == event.Offline:
		f.Name = event.NameAgentLogin
	case reported == event.Available && before == event.Break:
		f.Name = event.NameAgentBreakEnd
	case reported == event.Break && before != event.Break && before != "":
		f.Name = event.NameAgentBreakStart
	case reported == event.Offline && before != event.Offline && before != "":
		f.Name = event.NameAgentLogout
	}
}

// completePause names the begin and the end of a break of an agent whose memberships are
// reported one by one: it is on a break while it is paused in each of them, and does nothing
// else.
func completePause(f *event.Facts, agent *Entry, after event.State) {
	switch f.Name {
	case event.NameAgentState, event.NameAgentBreakStart, event.NameAgentBreakEnd:
	default:
		return
	}

	if agent == nil || agent.State == "" {
		if f.Name == event.NameAgentBreakStart && after != event.Break {
			f.Name = event.NameAgentState
		}
		return
	}

	switch before := agent.State; {
	case before != event.Break && after == event.Break:
		f.Name = event.NameAgentBreakStart
	case before == event.Break && after != event.Break:
		f.Name = event.NameAgentBreakEnd
	default:
		f.Name = event.NameAgentState
	}
}

// completeDevice sets the name of an event about one registration of a device that has
// others: it is registered still.
func (p *Partition) completeDevice(e *Event) {
	f := &e.Facts
	device := p.lookup(e.Account, Device, deviceOf(f))
	if f.Name != event.NameDeviceUnregistered || f.Contact == "" || device == nil {
		return
	}
	if len(without(device.Contacts, f.Contact)) > 0 {
		f.Name, f.State = event.NameOther, event.Registered
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

// addPrevious adds the state before the event. before is the entry of its agent or call.
func addPrevious(f *event.Facts, before *Entry) {
	if f.Name == event.NameQueueCallAnswered && before.leftQueue() && f.PreviousState == "" {
		f.PreviousState, f.PreviousSince = before.PreviousState, before.PreviousSince // it left the queue to this agent
		return
	}
	if f.State != "" && f.PreviousState == "" && before.State != "" {
		f.PreviousState, f.PreviousSince = before.State, before.Since
	}
}

// addDurations adds the waiting and talking time of the call. now is Unix milliseconds.
func addDurations(f *event.Facts, call *Entry, after event.State, now int64) {
	if call.State == event.Ended {
		return
	}

	waited := f.Name == event.NameQueueCallAnswered && call.AnsweredMS == 0 || f.Name == event.NameQueueCallAbandoned
	if waited && call.EnteredMS != 0 && !f.WaitMS.Known {
		f.WaitMS = between(call.EnteredMS, now)
	}
	if (after == event.Ended || f.Name == event.NameQueueCallEnded) && call.AnsweredMS != 0 && !f.TalkMS.Known {
		f.TalkMS = between(call.AnsweredMS, now)
	}
}

// between returns the duration between two times in Unix milliseconds, one of which may have a resolution
// of seconds.
func between(from, to int64) event.Millis {
	if to < from && from-to < 1000 {
		to = from
	}
	return event.MillisOf(to - from)
}

// setIfEmpty sets a text of the facts to what is known, unless the event has it.
func setIfEmpty(text *string, known string) {
	if *text == "" {
		*text = known
	}
}
