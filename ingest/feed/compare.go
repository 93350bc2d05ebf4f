package feed

import (
	"cmp"
	"slices"
	"strings"

	"trunkline/event"
	"trunkline/event/state"
)

// difference is the content of a resync record: facts that change an account's state to that of the
// platform.
type difference struct {
	account string
	facts   event.Facts
}

// comparison compares a platform's snapshot with the state.
type comparison struct {
	source     string // of the feed's records
	entries    map[state.Key]*state.Entry
	byID       map[objectID][]*state.Entry // in all accounts
	previous   *comparisonRound            // nil in the first round
	isChanging func(id string, e *state.Entry) bool

	result     comparisonRound
	endedCalls map[string]bool   // calls that the platform no longer has
	agents     map[string]Object // of the snapshot
}

type objectID struct {
	kind state.Kind
	id   string
}

// comparisonRound is the outcome of a comparison.
type comparisonRound struct {
	differences  []difference
	unsettled    map[string]bool    // ids of the objects to compare again in the next round
	missingCalls map[state.Key]bool // those of them that are calls missing for the first time
}

// compare returns the differences between the snapshot and the entries, calls before agents, because
// the end of a call changes its agent. A further round compares only the objects that the round before
// left open. Objects for which skip returns true are left open; e is nil for objects without an entry.
// A call ends only if it is missing in two rounds, because a platform may delete it shortly before it
// sends the event of its end.
func compare(snapshot Snapshot, entries []*state.Entry, source string, before *comparisonRound,
	skip func(id string, e *state.Entry) bool) *comparisonRound {
	c := &comparison{
		source: source, entries: map[state.Key]*state.Entry{}, byID: map[objectID][]*state.Entry{}, previous: before,
		isChanging: skip,
		result:     comparisonRound{unsettled: map[string]bool{}, missingCalls: map[state.Key]bool{}},
		endedCalls: map[string]bool{}, agents: map[string]Object{},
	}

	for _, o := range snapshot.Objects {
		if o.Kind == state.Agent {
			c.agents[o.ID] = o
		}
	}

	for _, e := range entries {
		c.entries[e.Key()] = e
		id := objectID{e.Kind, e.ID}
		c.byID[id] = append(c.byID[id], e)
	}

	for _, kind := range []state.Kind{state.Call, state.Device, state.Agent} {
		c.compareKind(kind, snapshot)
	}

	return &c.result
}

// compareKind compares the objects of one kind.
func (c *comparison) compareKind(kind state.Kind, snapshot Snapshot) {
	inSnapshot := map[state.Key]bool{}
	complete := slices.Contains(snapshot.Kinds, kind)
	type pair struct {
		object Object
		entry  *state.Entry
	}
	var pairs []pair

	for _, object := range snapshot.Objects {
		if object.Kind != kind {
			continue
		}

		e := c.findEntry(object)
		switch {
		case e != nil:
			object.Account = e.AccountID
			inSnapshot[e.Key()] = true
		case object.Account == "": // its account is unknown
			continue
		}

		pairs = append(pairs, pair{object, e})
	}

	if complete {
		for _, e := range c.sortedEntries(kind) {
			// Only this feed's own: what another platform tells of is not missing here.
			if e.Source == c.source && !inSnapshot[e.Key()] && (e.Live() || len(e.Queues) > 0) &&
				!c.isSkipped(e.ID, e) {
				c.endObject(e)
			}
		}
	}

	for _, p := range pairs {
		if c.isSkipped(p.object.ID, p.entry) {
			continue
		}

		switch kind {
		case state.Call:
			c.compareCall(p.object, p.entry)
		case state.Device:
			c.compareDevice(p.object, p.entry)
		case state.Agent:
			c.compareAgent(p.object, p.entry)
		}
	}
}

// sortedEntries returns the entries of a kind in the order of their keys.
func (c *comparison) sortedEntries(kind state.Kind) []*state.Entry {
	var all []*state.Entry
	for key, e := range c.entries {
		if key.Kind == kind {
			all = append(all, e)
		}
	}

	slices.SortFunc(all, func(a, b *state.Entry) int {
		return strings.Compare(a.Key().String(), b.Key().String())
	})

	return all
}

// findEntry returns the entry of an object. If the platform does not report the account, it returns the
// entry of this feed, else of any source.
func (c *comparison) findEntry(object Object) *state.Entry {
	if object.Account != "" {
		return c.entries[state.Key{Account: object.Account, Kind: object.Kind, ID: object.ID}]
	}

	candidates := c.byID[objectID{object.Kind, object.ID}]
	for _, e := range candidates {
		if e.Source == c.source {
			return e
		}
	}

	if len(candidates) > 0 {
		return candidates[0]
	}

	return nil
}

// isSkipped reports whether an object is not compared in this round.
func (c *comparison) isSkipped(id string, e *state.Entry) bool {
	if c.previous != nil && !c.previous.unsettled[id] {
		return true
	}
	// The rest of the round counts it as changing too, by whatever kind it is met again.
	if c.isChanging(id, e) {
		c.result.unsettled[id] = true
	}
	return c.result.unsettled[id]
}

// addDifference adds a difference: the facts of an object under a name.
func (c *comparison) addDifference(account string, name event.Name, facts event.Facts) {
	facts.Name = name
	// A place in the queue is of those who wait.
	if name != event.NameQueueCallEntered {
		facts.Position = 0
	}
	c.result.differences = append(c.result.differences, difference{account, facts})
}

// endObject ends an object that the platform no longer has.
func (c *comparison) endObject(e *state.Entry) {
	if e.Kind == state.Call && (c.previous == nil || !c.previous.missingCalls[e.Key()]) {
		c.result.missingCalls[e.Key()] = true
		c.result.unsettled[e.ID] = true
		return
	}

	facts := event.Facts{AgentID: e.AgentID, QueueID: e.QueueID, CallID: e.CallID}
	switch e.Kind {
	case state.Call:
		facts.CallID, facts.State, facts.TimestampMS = e.ID, event.Ended, c.endOf(e)
		c.endedCalls[e.ID] = true
		if e.QueueID != "" {
			c.addDifference(e.AccountID, event.NameQueueCallEnded, facts)
		} else {
			c.addDifference(e.AccountID, event.NameCallEnded, facts)
		}
	case state.Device:
		c.addDifference(e.AccountID, event.NameDeviceUnregistered,
			event.Facts{AgentID: e.ID, State: event.Unregistered})
	case state.Agent:
		for _, queue := range e.Queues {
			c.addDifference(e.AccountID, event.NameAgentQueueLeave, event.Facts{AgentID: e.ID, QueueID: queue})
		}
		if e.Live() {
			c.addDifference(e.AccountID, event.NameAgentLogout, event.Facts{AgentID: e.ID, State: event.Offline})
		}
	}
}

// endOf returns when a call that is missing ended, Unix milliseconds, by what the platform says of the
// last call of the agent who talked on it; 0: unknown.
func (c *comparison) endOf(call *state.Entry) int64 {
	agent, ok := c.agents[call.AgentID]
	talked := call.State == event.Talking || call.State == event.Held
	if !ok || !talked || agent.Account != "" && agent.Account != call.AccountID || agent.LastCallMS/1000 < call.Since {
		return 0
	}
	return agent.LastCallMS
}

func (c *comparison) compareDevice(o Object, e *state.Entry) {
	facts := o.Facts
	facts.AgentID = o.ID
	registered := e != nil && e.State == event.Registered

	if o.Facts.State == event.Unregistered {
		if registered {
			c.addDifference(o.Account, event.NameDeviceUnregistered, facts)
		}
		return
	}

	facts.State = event.Registered
	if !registered && len(o.Contacts) == 0 {
		c.addDifference(o.Account, event.NameDeviceRegistered, facts)
	}

	var contacts []string
	if registered {
		contacts = e.Contacts
	}

	for _, contact := range o.Contacts {
		facts.Contact = contact
		if !slices.Contains(contacts, contact) {
			c.addDifference(o.Account, event.NameDeviceRegistered, facts)
		}
	}

	if o.Contacts == nil {
		return
	}

	facts.State = event.Unregistered
	for _, contact := range contacts {
		facts.Contact = contact
		if !slices.Contains(o.Contacts, contact) {
			c.addDifference(o.Account, event.NameDeviceUnregistered, facts)
		}
	}
}

// compareAgent compares what the platform says of an agent with what is known of it, piece
// by piece.
func (c *comparison) compareAgent(o Object, e *state.Entry) {
	var queues []string
	var call string
	if e != nil {
		queues, call = e.Queues, e.CallID
	}
	if c.result.missingCalls[state.Key{Account: o.Account, Kind: state.Call, ID: call}] {
		c.result.unsettled[o.ID] = true // compared once the result for its call is known
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
		c.compareMember(o, m, sinceBehind(e, since), e)
	}

	// They were not requested: none is missing.
	if o.Queues == nil {
		return
	}

	for _, queue := range o.Queues {
		isMember := slices.ContainsFunc(o.Members, func(m Member) bool { return m.Queue == queue })
		if !slices.Contains(queues, queue) && !isMember {
			c.addDifference(o.Account, event.NameAgentQueueJoin,
				event.Facts{AgentID: o.ID, AgentName: o.Facts.AgentName, QueueID: queue})
		}
	}

	for _, queue := range queues {
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
	facts.AgentID, facts.TimestampMS = o.ID, sinceBehind(e, facts.TimestampMS)
	if facts.Agent == nil {
		facts.Agent = saidBy(facts.State)
	}

	said := facts.Agent
	if said == nil || e == nil && said.Presence == event.Offline {
		return
	}

	differs := e == nil
	if e != nil {
		known := e.WhatIsKnown()
		activity := cmp.Or(known.Activity, event.ActivityNone)
		differs = said.Presence != "" && said.Presence != known.Presence ||
			said.Activity != "" && said.Activity != activity &&
				!(said.Activity == event.ActivityTalking && e.State == event.Talking) ||
			said.Activity == event.ActivityNone && len(known.Calls) > 0 && !c.endedCalls[e.CallID] ||
			said.Reason != "" && said.Reason != known.Reason ||
			// it was set again
			said.Presence == event.Break && e.State == event.Break && facts.TimestampMS/1000 > e.Since ||
			o.Facts.AgentName != "" && o.Facts.AgentName != e.AgentName
	}

	if differs {
		c.addDifference(o.Account, event.NameAgentState, facts)
	}
}

// saidBy returns what one word for the state of an agent says; nil: nothing.
func saidBy(s event.State) *event.AgentSaid {
	switch s {
	case event.Available, event.Break, event.Offline, event.OtherState:
		return &event.AgentSaid{Presence: s, Activity: event.ActivityNone}
	case event.Ringing, event.Talking, event.WrapUp:
		return &event.AgentSaid{Activity: event.Activity(s)}
	}
	return nil
}

// sinceBehind returns a time at which a platform says that an agent's state began, Unix milliseconds,
// 0 if it lies before the state that is known. The platform then tells of something older, such as
// the last call before a break, and the figures would lose the time of the known state. The end of a
// wrap-up is known, whatever the platform says: a switch that was restarted has forgotten the call.
func sinceBehind(e *state.Entry, since int64) int64 {
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
		if m.SinceMS > o.LastCallMS && m.Said.Device == event.DeviceIdle && !m.Said.Paused &&
			m.Said.WrapUpUntilMS == 0 {
			said := *m.Said
			said.WrapUpUntilMS = m.SinceMS
			c.addDifference(o.Account, event.NameAgentState,
				event.Facts{AgentID: o.ID, AgentName: o.Facts.AgentName, QueueID: m.Queue, TimestampMS: o.LastCallMS,
					Agent: &said})
			return
		}
	}
}

// compareMember compares an agent's membership in a queue, and its phone. The agent is in its state
// since a time in Unix milliseconds; 0: unknown.
func (c *comparison) compareMember(o Object, m Member, since int64, e *state.Entry) {
	facts := event.Facts{AgentID: o.ID, AgentName: o.Facts.AgentName, QueueID: m.Queue, TimestampMS: since,
		Agent: m.Said}
	if e == nil || !slices.Contains(e.Queues, m.Queue) {
		c.addDifference(o.Account, event.NameAgentQueueJoin, facts)
		return
	}

	known, device := e.Member(m.Queue), m.Said.Device
	if device == event.DeviceUnknown {
		device = ""
	}

	switch {
	// Any piece that differs: the record tells all of them.
	case known == nil, e.Known.Device != device, m.Said.Presence != "" && m.Said.Presence != e.Known.Presence,
		o.Facts.AgentName != "" && o.Facts.AgentName != e.AgentName,
		known.InCall != m.Said.InCall, known.Paused != m.Said.Paused, m.Said.Paused && known.Reason != m.Said.Reason,
		m.Said.Paused && known.PausedSince < m.Said.PausedSince,
		m.Said.WrapUpUntilMS != 0 && known.WrapUpUntilMS != m.Said.WrapUpUntilMS,
		// it was over while nobody looked
		m.Said.WrapUpUntilMS == 0 && known.WrapUpUntilMS != 0 && e.State == event.WrapUp,
		device == event.DeviceIdle && e.State == event.Talking:
		c.addDifference(o.Account, event.NameAgentState, facts)
	}
}

// compareCall compares a call. It adds no outcome that the platform does not show: a caller
// of whom it only shows that it is in no queue any more has left it, whoever rang before.
func (c *comparison) compareCall(o Object, e *state.Entry) {
	facts := o.Facts
	facts.CallID = o.ID
	want, before := o.Facts.State, event.State("")

	if e != nil && e.State == event.Ended && o.Facts.QueueID == "" && e.Reason != event.ReasonResync {
		return // the call has left its queue and its leg continues, as after an event
	}

	if e != nil && e.State != event.Ended {
		before = e.State
		left := event.Facts{CallID: o.ID, QueueID: e.QueueID, State: event.Talking, InteractionID: facts.InteractionID}
		waits := before == event.Waiting || before == event.Ringing
		if e.Visits() && o.Facts.QueueID == "" && want != "" && want != event.Ended && (o.NoQueue || waits) {
			c.addDifference(o.Account, event.NameQueueCallEnded, left)
			// The leg goes on, and is held there.
			if want == event.Held {
				c.addDifference(o.Account, event.NameCallHeld, facts)
			}
			return
		}

		// only its leg is known, or another queue
		if waitsIn(&o.Facts) && (!e.Visits() || e.QueueID != o.Facts.QueueID) {
			if e.Visits() {
				c.addDifference(o.Account, event.NameQueueCallEnded, left)
			}
			c.enterQueue(o, facts)
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
		before = c.beginCall(o, facts, queued)
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

// beginCall adds the begin of a call, and returns its state after it.
func (c *comparison) beginCall(o Object, facts event.Facts, queued bool) event.State {
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

	c.enterQueue(o, facts)
	return event.Waiting
}

// enterQueue adds the begin of a visit to a queue, in which the call waits.
func (c *comparison) enterQueue(o Object, facts event.Facts) {
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
