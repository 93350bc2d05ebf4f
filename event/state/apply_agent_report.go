package state

import (
	"slices"

	"trunkline/event"
)

// nextAgent returns what is known of the event's agent after it, and the state that the agent shows. agent
// is its entry before the event, call the event's call after it; nil: none.
func (e *Event) nextAgent(agent, call *Entry) (KnownAgent, shownState) {
	f := &e.Facts
	k := agent.WhatIsKnown()
	switch {
	case f.Agent == nil:
		k.applyReport(f)
	case f.Name == event.NameAgentQueueLeave:
		k.dropMember(f.QueueID)
		k.applyPartialReports(f)
	default:
		k.applyPartialReports(f)
	}

	if call != nil && changesAgentsCall(f) {
		k.takeOrDropCall(f.AgentID, call, endsCall(f))
	} else if call == nil {
		k.applyCallWithoutEntry(f, agent)
	}

	return k, k.showAfter(agent, e.EffectiveMillis())
}

// showAfter returns what an agent shows after an event. Of whom nothing is known but that
// it had a call is available after it.
func (k *KnownAgent) showAfter(before *Entry, now int64) shownState {
	s := k.combine(now)
	if s.state == "" && before != nil && before.State != "" {
		s.state = event.Available
	}
	return s
}

// applyPartialReports takes in what a platform reported of the agent part by part.
func (k *KnownAgent) applyPartialReports(f *event.Facts) {
	report := f.Agent
	if report.Presence != "" {
		k.Presence, k.Reason = report.Presence, emptyIfTooLong(report.Reason)
	}

	switch report.Activity {
	case "":
	case event.ActivityNone:
		k.Activity, k.Calls = "", nil
	case event.ActivityNotReady:
		k.Activity, k.Calls = report.Activity, nil
	default:
		k.Activity = report.Activity
	}

	switch {
	case report.Device != "":
		k.applyMembershipReport(f)
	case report.WrapUpUntilMS != 0:
		if at, ok := k.memberIndex(f.QueueID); ok {
			m := k.Members[at]
			m.WrapUpUntilMS = report.WrapUpUntilMS
			k.setMember(m)
		}
	}
}

// applyMembershipReport takes in what a platform reported of a membership and of the agent's phone. A
// phone that is idle ends its calls, whatever the queue still counts; one that is
// offered a call may not ring yet.
func (k *KnownAgent) applyMembershipReport(f *event.Facts) {
	report := f.Agent
	k.Device = report.Device
	if k.Device == event.DeviceUnknown {
		k.Device = ""
	}

	if f.QueueID != "" && len(f.QueueID) <= maxTextBytes {
		m := Member{QueueID: f.QueueID, InCall: report.InCall, Paused: report.Paused, PausedSince: report.PausedSince,
			WrapUpUntilMS: report.WrapUpUntilMS}
		if report.Paused {
			m.Reason = emptyIfTooLong(report.Reason)
		}
		k.setMember(m)
	}

	if report.Presence == "" { // a member is at work, and its pauses are reported with its memberships
		k.Presence, k.Reason = event.Available, ""
	}

	if k.Device != event.DeviceIdle {
		return
	}

	talks := func(c AgentCall) bool { return !c.Ringing }
	if slices.ContainsFunc(k.Calls, talks) {
		k.Calls = slices.DeleteFunc(slices.Clone(k.Calls), talks)
	}
	if k.Activity == event.ActivityTalking {
		k.Activity = ""
	}
}

// applyReport takes in an event that reports its agent as one state. One in which the agent has
// nothing to do ends its calls; a break or a logout does not.
func (k *KnownAgent) applyReport(f *event.Facts) {
	reason, reported := emptyIfTooLong(f.Reason), f.State
	if reason == event.ReasonResync {
		reason = ""
	}
	if f.AgentState == f.State && subjectOf(f) == aboutAgent {
		reported = "" // the state follows from what is known
	}

	presence := func(s event.State) {
		k.Presence, k.Reason = s, reason
		// A break or a logout during a call counts after the call.
		if k.Activity != event.ActivityRinging && k.Activity != event.ActivityTalking || len(k.Calls) == 0 {
			k.Activity = ""
		}
	}

	switch f.Name {
	case event.NameAgentLogout:
		k.dropMember(f.QueueID) // the last one, where leaving it is the logout
		presence(event.Offline)
	case event.NameAgentBreakStart:
		presence(event.Break)
	case event.NameAgentLogin, event.NameAgentBreakEnd:
		presence(event.Available)
		k.applyReportedState(f.State, presence)
	case event.NameAgentQueueJoin:
		if f.State != "" {
			presence(event.Available)
			k.applyReportedState(f.State, presence)
		}
	case event.NameAgentQueueLeave:
		k.dropMember(f.QueueID)
		if f.State != "" {
			k.applyReportedState(f.State, presence)
		}
	case event.NameAgentState:
		if reported == "" {
			k.Activity, k.Calls = "", nil
		}
		k.applyReportedState(reported, presence)
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded, event.NameCallEnded, event.NameConferenceLeft,
		event.NameAgentNoAnswer:
		if at, ok := k.memberIndex(f.QueueID); ok && k.Members[at].InCall {
			m := k.Members[at]
			m.InCall = false
			k.setMember(m)
		}

		if agentOnly(reported) { // generic reports the agent's state after the call
			k.applyReportedState(reported, presence)
		}
	}
}

// applyReportedState takes in a state of an agent that was reported as one value.
func (k *KnownAgent) applyReportedState(s event.State, presence func(event.State)) {
	switch s {
	case event.Available, event.OtherState:
		presence(s)
		k.Activity, k.Calls = "", nil
	case event.Break, event.Offline:
		presence(s)
	case event.WrapUp:
		k.Activity, k.Calls = event.ActivityWrapUp, nil
	case event.Ringing, event.Talking:
		k.Activity = event.Activity(s)
	}
}

// changesAgentsCall reports whether the event may give its call to its agent or take it away, as the call's entry
// shows after it.
func changesAgentsCall(f *event.Facts) bool {
	switch subjectOf(f) {
	case aboutCall:
		return true
	case aboutAgent:
		return f.Name == event.NameAgentNoAnswer || assignsCallToAgent(f)
	}
	return false
}

// endsCall reports whether the event ends its call for its agent.
func endsCall(f *event.Facts) bool {
	switch f.Name {
	case event.NameQueueCallAbandoned, event.NameQueueCallEnded, event.NameCallEnded, event.NameAgentNoAnswer:
		return true
	}
	return f.Name == event.NameConferenceLeft && f.State == event.Ended
}

// takeOrDropCall makes a call one of the agent's if its entry says so, and else takes it away.
func (k *KnownAgent) takeOrDropCall(agent string, call *Entry, ended bool) {
	switch {
	case !call.isWith(agent) || call.State == event.Held && call.AgentID != agent:
		if ended || k.hasCall(call.ID) {
			k.dropCall(call.ID)
		}
	case call.State == event.Ringing || call.AgentID != agent:
		k.setCall(call.ID, true)
	default:
		k.setCall(call.ID, false)
	}
}

// applyCallWithoutEntry takes in an event about a call that has no entry, because it has no id or
// one that is too long.
func (k *KnownAgent) applyCallWithoutEntry(f *event.Facts, agent *Entry) {
	switch f.Name {
	case event.NameQueueCallOffered, event.NameCallRinging:
		if k.Activity != event.ActivityTalking {
			k.Activity = event.ActivityRinging
		}
	case event.NameQueueCallAnswered, event.NameCallAnswered, event.NameCallBridged:
		k.Activity = event.ActivityTalking
	}

	if endsCall(f) && (agent == nil || agent.CallID == "" || agent.CallID == f.CallID) {
		k.dropCall(f.CallID)
	}
}
