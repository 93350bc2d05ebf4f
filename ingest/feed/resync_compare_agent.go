package feed

import (
	"cmp"
	"slices"

	"trunkline/event"
	"trunkline/event/state"
)

// compareAgent compares what the platform reports of an agent with what is known of it, piece
// by piece.
func (c *comparison) compareAgent(o Object, e *state.Entry) {
	var knownQueues []string
	var call string
	if e != nil {
		knownQueues, call = e.Queues, e.CallID
	}
	if c.result.missingCalls[state.Key{Account: o.Account, Kind: state.Call, ID: call}] {
		c.result.unsettledIDs[o.ID] = true // compared once the result for its call is known
		return
	}

	if o.Members == nil {
		c.comparePresence(o, e)
	}

	var since int64
	for _, m := range o.Members {
		since = max(since, m.SinceMS)
	}

	c.addPastWrapUp(o, e)
	for _, m := range o.Members {
		c.compareMember(o, m, sinceUnlessOlder(e, since), e)
	}

	// They were not requested: none is missing.
	if o.Queues == nil {
		return
	}

	for _, queue := range o.Queues {
		isMember := slices.ContainsFunc(o.Members, func(m Member) bool { return m.Queue == queue })
		if !slices.Contains(knownQueues, queue) && !isMember {
			c.addDifference(o.Account, event.NameAgentQueueJoin,
				event.Facts{AgentID: o.ID, AgentName: o.Facts.AgentName, QueueID: queue})
		}
	}

	for _, queue := range knownQueues {
		if !slices.Contains(o.Queues, queue) {
			facts := event.Facts{AgentID: o.ID, QueueID: queue}
			if o.Members != nil {
				facts.State = event.Offline // if it was the last queue
			}
			c.addDifference(o.Account, event.NameAgentQueueLeave, facts)
		}
	}
}

// comparePresence compares whether an agent is at work, and what it does.
func (c *comparison) comparePresence(o Object, e *state.Entry) {
	facts := o.Facts
	facts.AgentID, facts.TimestampMS = o.ID, sinceUnlessOlder(e, facts.TimestampMS)
	if facts.Agent == nil {
		facts.Agent = reportOfState(facts.State)
	}

	report := facts.Agent
	if report == nil || e == nil && report.Presence == event.Offline {
		return
	}

	differs := e == nil
	if e != nil {
		known := e.WhatIsKnown()
		activity := cmp.Or(known.Activity, event.ActivityNone)
		differs = report.Presence != "" && report.Presence != known.Presence ||
			report.Activity != "" && report.Activity != activity &&
				!(report.Activity == event.ActivityTalking && e.State == event.Talking) ||
			report.Activity == event.ActivityNone && len(known.Calls) > 0 && !c.endedCalls[e.CallID] ||
			report.Reason != "" && report.Reason != known.Reason ||
			// it was set again
			report.Presence == event.Break && e.State == event.Break && facts.TimestampMS/1000 > e.Since ||
			o.Facts.AgentName != "" && o.Facts.AgentName != e.AgentName
	}

	if differs {
		c.addDifference(o.Account, event.NameAgentState, facts)
	}
}

// reportOfState returns what the state of an agent alone reports; nil: nothing.
func reportOfState(s event.State) *event.AgentReport {
	switch s {
	case event.Available, event.Break, event.Offline, event.OtherState:
		return &event.AgentReport{Presence: s, Activity: event.ActivityNone}
	case event.Ringing, event.Talking, event.WrapUp:
		return &event.AgentReport{Activity: event.Activity(s)}
	}
	return nil
}

// sinceUnlessOlder returns a time at which a platform reports that an agent's state began, Unix milliseconds,
// 0 if it lies before the state that is known. The platform then reports something older, such as
// the last call before a break, and the figures would lose the time of the known state. The end of a
// wrap-up is known, whatever the platform reports: a switch that was restarted has forgotten the call.
func sinceUnlessOlder(e *state.Entry, since int64) int64 {
	if e == nil {
		return since
	}

	if e.State == event.WrapUp {
		for _, m := range e.WhatIsKnown().Members {
			since = max(since, m.WrapUpUntilMS)
		}
	}

	if since/1000 < e.Since {
		return 0
	}

	return since
}

// addPastWrapUp adds the wrap-up that began and ended while nobody looked, after the call on which the
// agent talks as far as is known: from the end of the call until since when the member is idle.
func (c *comparison) addPastWrapUp(o Object, e *state.Entry) {
	if e == nil || e.State != event.Talking || o.LastCallMS/1000 < e.Since {
		return
	}

	for _, m := range o.Members {
		if m.SinceMS > o.LastCallMS && m.Report.Device == event.DeviceIdle && !m.Report.Paused &&
			m.Report.WrapUpUntilMS == 0 {
			report := *m.Report
			report.WrapUpUntilMS = m.SinceMS
			c.addDifference(o.Account, event.NameAgentState,
				event.Facts{AgentID: o.ID, AgentName: o.Facts.AgentName, QueueID: m.Queue, TimestampMS: o.LastCallMS,
					Agent: &report})
			return
		}
	}
}

// compareMember compares an agent's membership in a queue, and its phone. The agent is in its state
// since a time in Unix milliseconds; 0: unknown.
func (c *comparison) compareMember(o Object, m Member, since int64, e *state.Entry) {
	facts := event.Facts{AgentID: o.ID, AgentName: o.Facts.AgentName, QueueID: m.Queue, TimestampMS: since,
		Agent: m.Report}
	if e == nil || !slices.Contains(e.Queues, m.Queue) {
		c.addDifference(o.Account, event.NameAgentQueueJoin, facts)
		return
	}

	known, device := e.Member(m.Queue), m.Report.Device
	if device == event.DeviceUnknown {
		device = ""
	}

	switch {
	// Any part that differs: the record has all of them.
	case known == nil, e.KnownAgent.Device != device,
		m.Report.Presence != "" && m.Report.Presence != e.KnownAgent.Presence,
		o.Facts.AgentName != "" && o.Facts.AgentName != e.AgentName,
		known.InCall != m.Report.InCall, known.Paused != m.Report.Paused,
		m.Report.Paused && known.Reason != m.Report.Reason,
		m.Report.Paused && known.PausedSince < m.Report.PausedSince,
		m.Report.WrapUpUntilMS != 0 && known.WrapUpUntilMS != m.Report.WrapUpUntilMS,
		// it was over while nobody looked
		m.Report.WrapUpUntilMS == 0 && known.WrapUpUntilMS != 0 && e.State == event.WrapUp,
		device == event.DeviceIdle && e.State == event.Talking:
		c.addDifference(o.Account, event.NameAgentState, facts)
	}
}
