package stats

import (
	"slices"
	"unique"

	"trunkline/event"
	"trunkline/event/state"
)

// agentFold folds what events mean for agents: their states, the rows with their time, and the wrap-up in the
// rows of queues.
type agentFold struct {
	table *entryTable
	rows  *rows
}

// foldEvent updates the event's agent and its figures. ofAnother: the event's call is
// known and another agent has it.
func (f *agentFold) foldEvent(e *state.Event, ofAnother bool, at int64) {
	facts := &e.Facts
	if facts.AgentID == "" || len(facts.AgentID) > maxTextBytes {
		return
	}

	// No row takes time from before: an old date would go through all intervals since.
	at = max(at, e.ID.Milli()-f.table.intervals.late.Milliseconds())
	k := newKey(kindOpenAgent, e.Account, facts.AgentID, 0)
	a, known := f.table.entries[k].(*agent)
	if !known {
		a = &agent{header: header{key: k}, SinceMS: at, CreditedMS: at}
	}

	before := state.InferredAgent{State: a.State, Call: a.CallID, AfterCall: a.AfterCall}
	next := state.AgentAfter(facts, before, ofAnother)
	after := next.State
	// The message's state stands above the computed one: readers of cc.state saw it.
	shown := shownState(facts)
	if shown != "" {
		after = shown
	}

	step := facts.Name == event.NameQueueCallOffered || facts.Name == event.NameQueueCallAnswered ||
		facts.Name == event.NameAgentNoAnswer
	if !known {
		// An agent is remembered from the first event on that gives figures or a membership.
		if after == "" && !step && facts.Name != event.NameAgentQueueJoin {
			return
		}
		if f.rows.isFull(k) {
			f.rows.ignored++
			return
		}

		a.Seen = int64(e.ID)
		f.table.add(a)
	}

	if after == event.Ringing && a.State != event.Ringing { // what follows is no repeat
		a.Step, a.StepCall = "", ""
	}
	if step && (a.Step != facts.Name || a.StepCall != facts.CallID) {
		f.countStep(a, facts.Name, at)
		a.Step, a.StepCall = facts.Name, emptyIfTooLong(facts.CallID)
	}

	reason := a.reasonAfter(facts, after)
	if after != a.State || reason != a.Reason {
		f.setState(a, after, reason, at)
	}

	a.AfterCall = next.AfterCall
	a.foldMembership(facts)
	if !before.KeepsCall(facts, after) {
		f.updateCurrentCall(a, facts, ofAnother)
	}

	a.Seen = int64(e.ID)
	f.table.recordChange(a)
}

// foldMembership updates the queues of the agent. Whoever is offered a call of a queue is a member
// of it: some platforms do not say so otherwise.
func (a *agent) foldMembership(facts *event.Facts) {
	queue := facts.QueueID
	if queue == "" || len(queue) > maxTextBytes {
		return
	}

	fromQueueMember := facts.Agent != nil && facts.Agent.Device != "" // an event of a queue member
	switch facts.Name {
	case event.NameAgentQueueLeave, event.NameAgentLogout:
		a.Queues, a.Paused = without(a.Queues, queue), without(a.Paused, queue)
		return
	case event.NameAgentQueueJoin, event.NameAgentLogin, event.NameQueueCallOffered, event.NameQueueCallAnswered:
		a.Queues = with(a.Queues, queue)
	default:
		if fromQueueMember {
			a.Queues = with(a.Queues, queue)
		}
	}

	switch {
	case !fromQueueMember:
	case facts.Agent.Paused:
		a.Paused = with(a.Paused, queue)
	default:
		a.Paused = without(a.Paused, queue)
	}
}

// maxQueues bounds the queues of one agent, as in cc.state.
const maxQueues = 256

// with and without return new slices, because watches keep the former one.
func with(sorted []string, text string) []string {
	at, in := slices.BinarySearch(sorted, text)
	if in || len(sorted) == maxQueues {
		return sorted
	}
	return slices.Insert(slices.Clone(sorted), at, text)
}

func without(sorted []string, text string) []string {
	at, in := slices.BinarySearch(sorted, text)
	if !in {
		return sorted
	}
	return slices.Delete(slices.Clone(sorted), at, at+1)
}

// isLoggedOut reports whether no time is counted for the agent.
func (a *agent) isLoggedOut() bool { return a.State == "" || a.State == event.Offline }

// shownState returns the state of an event's agent after it, as cc.state has it; "" if a
// message does not say it.
func shownState(facts *event.Facts) event.State {
	switch {
	case facts.AgentState != "":
		return facts.AgentState
	case facts.Agent != nil && isAboutAgent(facts.Name):
		return facts.State
	}
	return ""
}

func isAboutAgent(name event.Name) bool {
	switch name {
	case event.NameAgentLogin, event.NameAgentLogout, event.NameAgentBreakStart, event.NameAgentBreakEnd,
		event.NameAgentState,
		event.NameAgentQueueJoin, event.NameAgentQueueLeave, event.NameAgentNoAnswer:
		return true
	}
	return false
}

// reasonAfter returns the reason of a break after an event.
func (a *agent) reasonAfter(facts *event.Facts, after event.State) string {
	// A feed's resync has its own reason in the facts; it is no reason of a break.
	reason := facts.Reason
	if facts.Agent != nil {
		reason = facts.Agent.Reason
	} else if reason == event.ReasonResync {
		reason = ""
	}

	switch {
	case after != event.Break:
		return ""
	case reason != "" && (facts.State == event.Break || facts.Name == event.NameAgentBreakStart):
		return emptyIfTooLong(reason)
	case a.State == event.Break:
		return a.Reason
	}

	return ""
}

// updateCurrentCall sets the agent's current call, as cc.state does.
func (f *agentFold) updateCurrentCall(a *agent, facts *event.Facts, ofAnother bool) {
	if a.State != event.Ringing && a.State != event.Talking {
		a.CallID = ""
		return
	}

	switch facts.Name {
	case event.NameQueueCallOffered, event.NameCallRinging:
		if a.State == event.Ringing {
			a.CallID = emptyIfTooLong(facts.CallID)
		}
	case event.NameQueueCallAnswered:
		a.CallID = emptyIfTooLong(facts.CallID)
		// The wrap-up that follows counts where the call counts: in the interval in which it entered the queue.
		if c, ok := f.table.entries[key{a.key.account, unique.Make(facts.CallID), 0, kindOpenCall}].(*call); ok {
			a.Queue, a.QueueStart = c.Queue, f.table.intervals.startOf(c.EnteredMS)
		}
	case event.NameCallAnswered, event.NameCallBridged, event.NameCallTransferred:
		if facts.CallID != "" {
			a.CallID = emptyIfTooLong(facts.CallID)
		}
	default:
		if a.CallID == "" && !ofAnother {
			a.CallID = emptyIfTooLong(facts.CallID)
		}
	}
}

// countStep counts a step of a queue's call for the agent.
func (f *agentFold) countStep(a *agent, step event.Name, at int64) {
	r := f.rows.ofAgent(a.key.account, a.key.id, f.table.intervals.startOf(at))
	if r == nil {
		f.rows.ignored++
		return
	}

	switch step {
	case event.NameQueueCallOffered:
		r.Offered++
	case event.NameQueueCallAnswered:
		r.Answered++
	case event.NameAgentNoAnswer:
		r.NoAnswer++
	}
}

// setState sets the agent's state from a time on. A time before the start of the current
// state is replaced by that start, so that no time counts twice when a clock is set
// back. Time that is already counted up to the end of an interval moves to the new
// state.
func (f *agentFold) setState(a *agent, next event.State, reason string, at int64) {
	at = max(at, a.SinceMS)
	// Rows have the current state up to CreditedMS: a later change adds what lacks, an earlier one takes back.
	counted := max(at, a.CreditedMS)
	if a.isLoggedOut() {
		counted = at
	} else if at >= a.CreditedMS {
		f.addTime(a, a.State, a.Reason, a.CreditedMS, at, 1)
	} else {
		f.addTime(a, a.State, a.Reason, at, a.CreditedMS, -1)
	}

	if a.endsWrapUp(next) {
		defer func() { a.Queue, a.QueueStart = "", 0 }()
	}

	f.addTime(a, next, reason, at, counted, 1)
	a.State, a.Reason, a.SinceMS, a.CreditedMS = next, reason, at, counted
}

// endsWrapUp reports whether the wrap-up of the agent's last call is over in the state next; a
// break interrupts it.
func (a *agent) endsWrapUp(next event.State) bool {
	switch next {
	case event.WrapUp, event.Break:
		return false
	case event.Talking, event.Offline:
		return true
	}
	return a.State == event.WrapUp || a.State == event.Break
}

// addTime adds the time between two times to the rows of the agent, or subtracts it
// with sign -1. The time is split at interval boundaries.
func (f *agentFold) addTime(a *agent, s event.State, reason string, from, to, sign int64) {
	if s == "" || s == event.Offline {
		return
	}

	var wrapUp int64
	for from < to {
		start := f.table.intervals.startOf(from)
		until := min(to, (start+f.table.intervals.seconds())*1000)
		r := f.rows.ofAgent(a.key.account, a.key.id, start)
		if r != nil {
			r.add(s, reason, sign*(until-from))
		}
		// Also where the agent's row takes no more: the queue's may be of another interval.
		if s == event.WrapUp && a.Queue != "" {
			wrapUp += sign * (until - from)
		}

		from = until
	}

	if wrapUp == 0 {
		return
	}

	r := f.rows.ofQueue(a.key.account, unique.Make(a.Queue), a.QueueStart)
	if r != nil {
		r.WrapUpMS += wrapUp
	}
}

// creditInterval adds the time of an agent without an event up to the end of its interval.
func (f *agentFold) creditInterval(a *agent) {
	end := (f.table.intervals.startOf(a.CreditedMS) + f.table.intervals.seconds()) * 1000
	f.addTime(a, a.State, a.Reason, a.CreditedMS, end, 1)
	a.CreditedMS = end
	f.table.recordChange(a)
}

// stopRinging makes an agent whose phone rang for the event's call available after another one has answered.
func (f *agentFold) stopRinging(e *state.Event, id string, at int64) {
	rang, ok := f.table.entries[newKey(kindOpenAgent, e.Account, id, 0)].(*agent)
	if !ok || rang.State != event.Ringing || rang.CallID != e.Facts.CallID {
		return
	}

	f.setState(rang, state.InferredAgent{AfterCall: rang.AfterCall}.StateAfterCall(), "", at)
	rang.AfterCall, rang.CallID, rang.Seen = "", "", int64(e.ID)
	f.table.recordChange(rang)
}

// add adds time in a state to the row.
func (r *AgentRow) add(s event.State, reason string, ms int64) {
	r.LoggedInMS += ms
	switch s {
	case event.Available:
		r.AvailableMS += ms
	case event.Talking:
		r.TalkingMS += ms
	case event.WrapUp:
		r.WrapUpMS += ms
	case event.Break:
		r.BreakMS += ms
		r.addReason(reason, ms)
	}
}

// addReason adds break time to its reason; a break without a reason is not added.
func (r *AgentRow) addReason(reason string, ms int64) {
	if reason == "" {
		return
	}
	if len(reason) > maxReasonBytes {
		reason = otherReason
	}
	if r.BreakMSByReason == nil {
		r.BreakMSByReason = map[string]int64{}
	}
	// Time is taken back from where it was added: a reason without an entry went to the others.
	if _, ok := r.BreakMSByReason[reason]; !ok && (ms < 0 || len(r.BreakMSByReason) >= maxReasons) {
		reason = otherReason
	}

	r.BreakMSByReason[reason] += ms
	if r.BreakMSByReason[reason] == 0 {
		delete(r.BreakMSByReason, reason)
	}
}
