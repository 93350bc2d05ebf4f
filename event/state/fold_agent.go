package state

import (
	"slices"

	"trunkline/event"
)

// foldAgent updates the event's agent, and returns its state. call is the event's call
// after it, nil: none.
func (p *Partition) foldAgent(e *Event, agent, call *Entry) event.State {
	f := &e.Facts
	if f.AgentID == "" || len(f.AgentID) > maxTextBytes || agent != nil && agent.EventID >= e.ID {
		return ""
	}

	known, shows := e.nextAgent(agent, call)
	// Of whom nothing is known, only a queue makes an agent.
	if agent == nil && shows.state == "" && f.Name != event.NameAgentQueueJoin {
		return ""
	}

	next := e.copyOrNew(Agent, f.AgentID, agent)
	next.AgentID = f.AgentID
	replaceUnlessEmpty(&next.AgentName, f.AgentName)

	switch f.Name {
	case event.NameAgentQueueJoin, event.NameAgentLogin:
		next.Queues = addQueue(next.Queues, f.QueueID)
	case event.NameAgentQueueLeave, event.NameAgentLogout:
		next.Queues = removeQueue(next.Queues, f.QueueID)
	default:
		if f.Agent != nil && f.Agent.Device != "" { // only a member is reported
			next.Queues = addQueue(next.Queues, f.QueueID)
		}
	}

	p.showAgent(e, &next, agent, &known, shows, call)
	p.releaseCalls(e, agent, &known)
	if f.Agent != nil && f.Agent.OtherID != "" {
		p.setOtherID(e)
	}

	return shows.state
}

// setOtherID records another id of the event's agent: events with that id are events of the agent (see
// complete).
func (p *Partition) setOtherID(e *Event) {
	id := emptyIfTooLong(e.Facts.Agent.OtherID)
	other := p.lookup(e.Account, Agent, id)
	// One that has queues or calls of its own is another agent.
	if id == "" || id == e.Facts.AgentID ||
		other != nil && (len(other.Queues) > 0 || len(other.WhatIsKnown().Calls) > 0) {
		return
	}

	// Offline, so that no snapshot shows the agent twice.
	next := Entry{AccountID: e.Account, Kind: Agent, ID: id, Since: e.since(), Source: emptyIfTooLong(e.Source),
		Facts:      event.Facts{Name: e.Facts.Name, AgentID: id, State: event.Offline},
		KnownAgent: &KnownAgent{SameAs: e.Facts.AgentID}}

	if other != nil && other.KnownAgent != nil && other.KnownAgent.SameAs == e.Facts.AgentID {
		next.Since, next.Name = other.Since, other.Name
	}

	p.put(&next, other, e.ID)
}

// showAgent writes an agent's entry with what is known of it and with the state that it shows. call is the
// event's call after it, nil: none.
func (p *Partition) showAgent(e *Event, next, before *Entry, known *KnownAgent, shows shownState, call *Entry) {
	e.setState(next, shows.state)
	if before != nil && before.State == event.Break && next.State == event.Break {
		next.Since = max(next.Since, e.breakSetAgain(before, known))
	}

	next.Reason, next.AfterCall = shows.reason, shows.after
	p.showCall(e, next, before, known, call)

	if before == nil || !known.equal(before.KnownAgent) {
		next.KnownAgent = known
	}

	p.put(next, before, e.ID)
}

// breakSetAgain returns when an agent's break was set again while it lasted, for platforms
// that report this: a presence, or the pause that began last. Unix seconds; 0: it was not.
func (e *Event) breakSetAgain(before *Entry, known *KnownAgent) int64 {
	f, was := &e.Facts, before.WhatIsKnown()
	if f.Agent == nil || f.AgentID != before.ID {
		return 0
	}
	if f.Agent.Presence == event.Break {
		return e.since()
	}

	pause, former := known.pausedEverywhere(), was.pausedEverywhere()
	if pause == nil || former == nil || pause.PausedSince <= former.PausedSince {
		return 0
	}

	return e.clampToLog(pause.PausedSince*1000) / 1000
}

// showCall sets the one of an agent's calls that its entry shows: rather one on which it
// talks than one that rings, and rather a caller in a queue than a leg. changed is the event's call after it, nil:
// none.
func (p *Partition) showCall(e *Event, next, before *Entry, known *KnownAgent, changed *Entry) {
	var best *Entry
	rank := 0
	for _, c := range known.Calls {
		call := changed
		if call == nil || call.ID != c.ID {
			call = p.lookup(e.Account, Call, c.ID)
		}
		if call == nil {
			continue
		}

		r := 1
		if !c.Ringing {
			r += 2
		}
		if call.EnteredMS != 0 {
			r++
		}
		if r > rank {
			best, rank = call, r
		}
	}

	switch f := &e.Facts; {
	case best != nil:
		next.CallID, next.Caller, next.Callee = best.ID, best.Caller, best.Callee
		next.InteractionID, next.OriginationCallID = best.InteractionID, best.OriginationCallID
		replaceUnlessEmpty(&next.QueueID, best.QueueID)
	case !onCall(next.State) || len(known.Calls) > 0:
		next.CallID, next.Caller, next.Callee, next.InteractionID, next.OriginationCallID = "", "", "", "", ""

	// a call that has no entry
	case subjectOf(f) == aboutAgent && f.AgentID == next.ID && f.CallID != "" && onCall(f.State):
		next.CallID, next.Caller, next.Callee = emptyIfTooLong(f.CallID), emptyIfTooLong(f.Caller), emptyIfTooLong(
			f.Callee)
		next.InteractionID, next.OriginationCallID = emptyIfTooLong(f.InteractionID), emptyIfTooLong(
			f.OriginationCallID)
		replaceUnlessEmpty(&next.QueueID, f.QueueID)
	case before != nil && before.KnownAgent != nil && before.KnownAgent.hasCall(next.CallID):
		next.CallID, next.Caller, next.Callee, next.InteractionID, next.OriginationCallID = "", "", "", "", ""
	}
}

// releaseAgents takes the call from the agents that had it before the event and do not
// have it any more.
func (p *Partition) releaseAgents(e *Event, before, after *Entry) {
	if before == nil {
		return
	}

	release := func(id string) {
		if id != "" && id != e.Facts.AgentID && !after.isWith(id) {
			p.releaseAgent(e, id, after.ID)
		}
	}

	// While the call rings, its AgentID is one of Ringing.
	if before.State == event.Talking || before.State == event.Held || len(before.Ringing) == 0 {
		release(before.AgentID)
	}

	for _, id := range before.Ringing {
		release(id)
	}
}

// releaseAgent takes a call from an agent.
func (p *Partition) releaseAgent(e *Event, id, call string) {
	agent := p.lookup(e.Account, Agent, id)
	if agent == nil {
		return
	}

	known := agent.WhatIsKnown()
	if !known.hasCall(call) {
		return
	}

	known.dropCall(call)
	next := e.copyOrNew(Agent, id, agent)
	p.showAgent(e, &next, agent, &known, known.showAfter(agent, e.EffectiveMillis()), nil)
}

// releaseExpired takes a call whose end was never reported from its agents, at the time of the
// event now. They get the id of the event before, since now may be about one of them and is
// folded afterwards.
func (p *Partition) releaseExpired(call *Entry, before, now event.ID) {
	if !call.Live() {
		return
	}

	at := &Event{ID: before, Account: call.AccountID, Timestamp: now.Milli() / 1000, Source: call.Source,
		Facts: event.Facts{Name: event.NameOther}}
	for _, agent := range append([]string{call.AgentID}, call.Ringing...) {
		p.releaseAgent(at, agent, call.ID)
	}
}

// releaseCalls takes from the agent the calls that it has no longer: its platform reported
// that it does nothing.
func (p *Partition) releaseCalls(e *Event, before *Entry, known *KnownAgent) {
	if before == nil {
		return
	}

	for _, had := range before.WhatIsKnown().Calls {
		if known.hasCall(had.ID) {
			continue
		}

		call := p.lookup(e.Account, Call, had.ID)
		if call == nil || !call.isWith(before.ID) {
			continue
		}

		next := *call
		next.Ringing = without(call.Ringing, before.ID)
		if call.AgentID == before.ID {
			next.AgentID, next.AgentName = "", ""
			if call.State == event.Talking || call.State == event.Held { // the caller was sent on, or is gone
				next.EnteredMS = 0
			}
		}

		if call.State == event.Ringing {
			if len(next.Ringing) > 0 {
				next.AgentID = next.Ringing[len(next.Ringing)-1]
			} else {
				e.setState(&next, event.Waiting)
			}
		}

		p.put(&next, call, e.ID)
	}
}

// isWith reports whether an agent talks on the call or it rings at the agent.
func (e *Entry) isWith(agent string) bool {
	switch e.State {
	case event.Talking, event.Held:
		return e.AgentID == agent || slices.Contains(e.Ringing, agent)
	case event.Ringing:
		return slices.Contains(e.Ringing, agent) || len(e.Ringing) == 0 && e.AgentID == agent
	}
	return false
}

// assignsCallToAgent reports whether the event assigns the call to its agent.
func assignsCallToAgent(f *event.Facts) bool {
	switch f.Name {
	case event.NameQueueCallOffered, event.NameQueueCallAnswered, event.NameCallRinging, event.NameCallAnswered,
		event.NameCallBridged,
		event.NameCallTransferred:
		return f.AgentID != ""
	case event.NameAgentState:
		return f.AgentID != "" && onCall(f.State) && f.Agent == nil
	}
	return false
}

// addQueue and removeQueue return new slices, because entries are immutable.
func addQueue(queues []string, queue string) []string {
	at, in := slices.BinarySearch(queues, queue)
	if in || queue == "" || len(queue) > maxTextBytes || len(queues) == maxQueues {
		return queues
	}
	return slices.Insert(slices.Clone(queues), at, queue)
}

func removeQueue(queues []string, queue string) []string {
	at, in := slices.BinarySearch(queues, queue)
	if !in {
		return queues
	}
	if len(queues) == 1 {
		return nil
	}
	return slices.Delete(slices.Clone(queues), at, at+1)
}
