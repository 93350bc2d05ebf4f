package feed

import (
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
	source  string // of the feed's records
	entries map[state.Key]*state.Entry
	byID    map[entryID][]*state.Entry // in all accounts
	before  *round                     // nil in the first round
	skip    func(id string, e *state.Entry) bool

	found round
	ended map[string]bool // calls that the platform no longer has
}

type entryID struct {
	kind state.Kind
	id   string
}

// round is the outcome of a comparison.
type round struct {
	differences []difference
	open        map[string]bool    // ids of the objects to compare again in the next round
	missing     map[state.Key]bool // those of them that are calls missing for the first time
}

// compare returns the differences between the snapshot and the entries, calls before agents, because
// the end of a call changes its agent. A further round compares only the objects that the round before
// left open. Objects for which skip returns true are left open; e is nil for objects without an entry.
// A call ends only if it is missing in two rounds, because a platform may delete it shortly before it
// sends the event of its end.
func compare(snapshot Snapshot, entries []*state.Entry, source string, before *round, skip func(id string, e *state.Entry) bool) *round {
	c := &comparison{
		source: source, entries: map[state.Key]*state.Entry{}, byID: map[entryID][]*state.Entry{}, before: before, skip: skip,
		found: round{open: map[string]bool{}, missing: map[state.Key]bool{}}, ended: map[string]bool{},
	}
	for _, e := range entries {
		c.entries[e.Key()] = e
		id := entryID{e.Kind, e.ID}
		c.byID[id] = append(c.byID[id], e)
	}
	for _, kind := range []state.Kind{state.Call, state.Device, state.Agent} {
		c.kind(kind, snapshot)
	}
	return &c.found
}

// kind compares the objects of one kind.
func (c *comparison) kind(kind state.Kind, snapshot Snapshot) {
	there := map[state.Key]bool{}
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
		e := c.find(object)
		switch {
		case e != nil:
			object.Account = e.AccountID
			there[e.Key()] = true
		case object.Account == "": // its account is unknown
			continue
		}
		pairs = append(pairs, pair{object, e})
	}
	if complete {
		for _, e := range c.sorted(kind) {
			if e.Source == c.source && !there[e.Key()] && (e.Live() || len(e.Queues) > 0) && !c.skips(e.ID, e) {
				c.end(e)
			}
		}
	}
	for _, p := range pairs {
		if c.skips(p.object.ID, p.entry) {
			continue
		}
		switch kind {
		case state.Call:
			c.call(p.object, p.entry)
		case state.Device:
			c.device(p.object, p.entry)
		case state.Agent:
			c.agent(p.object, p.entry)
		}
	}
}

// sorted returns the entries of a kind in the order of their keys.
func (c *comparison) sorted(kind state.Kind) []*state.Entry {
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

// find returns the entry of an object. If the platform does not report the account, it returns the
// entry of this feed, else of any source.
func (c *comparison) find(object Object) *state.Entry {
	if object.Account != "" {
		return c.entries[state.Key{Account: object.Account, Kind: object.Kind, ID: object.ID}]
	}
	candidates := c.byID[entryID{object.Kind, object.ID}]
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

// skips reports whether an object is not compared in this round.
func (c *comparison) skips(id string, e *state.Entry) bool {
	if c.before != nil && !c.before.open[id] {
		return true
	}
	if c.skip(id, e) {
		c.found.open[id] = true
	}
	return c.found.open[id]
}

// add adds a difference: the facts of an object under a name.
func (c *comparison) add(account string, name event.Name, facts event.Facts) {
	facts.Name = name
	c.found.differences = append(c.found.differences, difference{account, facts})
}

// end ends an object that the platform no longer has.
func (c *comparison) end(e *state.Entry) {
	if e.Kind == state.Call && (c.before == nil || !c.before.missing[e.Key()]) {
		c.found.missing[e.Key()] = true
		c.found.open[e.ID] = true
		return
	}
	facts := event.Facts{AgentID: e.AgentID, QueueID: e.QueueID, CallID: e.CallID}
	switch e.Kind {
	case state.Call:
		facts.CallID, facts.State = e.ID, event.Ended
		c.ended[e.ID] = true
		if e.QueueID != "" {
			c.add(e.AccountID, event.NameQueueCallEnded, facts)
		} else {
			c.add(e.AccountID, event.NameCallEnded, facts)
		}
	case state.Device:
		c.add(e.AccountID, event.NameDeviceUnregistered, event.Facts{AgentID: e.ID, State: event.Unregistered})
	case state.Agent:
		for _, queue := range e.Queues {
			c.add(e.AccountID, event.NameAgentQueueLeave, event.Facts{AgentID: e.ID, QueueID: queue})
		}
		if e.Live() {
			c.add(e.AccountID, event.NameAgentLogout, event.Facts{AgentID: e.ID, State: event.Offline})
		}
	}
}

func (c *comparison) device(o Object, e *state.Entry) {
	facts := o.Facts
	facts.AgentID = o.ID
	registered := e != nil && e.State == event.Registered
	switch {
	case o.Facts.State == event.Unregistered:
		if registered {
			c.add(o.Account, event.NameDeviceUnregistered, facts)
		}
	case !registered:
		facts.State = event.Registered
		c.add(o.Account, event.NameDeviceRegistered, facts)
	}
}

func (c *comparison) agent(o Object, e *state.Entry) {
	facts := o.Facts
	facts.AgentID = o.ID
	var before event.State
	var queues []string
	var call string
	if e != nil {
		before, queues, call = e.State, e.Queues, e.CallID
	}
	if c.found.missing[state.Key{Account: o.Account, Kind: state.Call, ID: call}] {
		c.found.open[o.ID] = true // compared once the result for its call is known
		return
	}
	// The end of a call makes its agent available, even if the platform reports another state.
	if want := o.Facts.State; want != "" && (want != before || c.ended[call] && call != "") {
		switch {
		case want != event.Offline:
			c.add(o.Account, event.NameAgentState, facts)
		case before != "":
			c.add(o.Account, event.NameAgentLogout, facts)
		}
	}
	if o.Queues == nil {
		return
	}
	for _, queue := range o.Queues {
		if !slices.Contains(queues, queue) {
			c.add(o.Account, event.NameAgentQueueJoin, event.Facts{AgentID: o.ID, AgentName: o.Facts.AgentName, QueueID: queue})
		}
	}
	for _, queue := range queues {
		if !slices.Contains(o.Queues, queue) {
			c.add(o.Account, event.NameAgentQueueLeave, event.Facts{AgentID: o.ID, QueueID: queue})
		}
	}
}

func (c *comparison) call(o Object, e *state.Entry) {
	facts := o.Facts
	facts.CallID = o.ID
	want, before := o.Facts.State, event.State("")
	if e != nil && e.State == event.Ended && o.Facts.QueueID == "" && e.Reason != event.ReasonResync {
		return // the call has left its queue and its leg continues, as after an event
	}
	if e != nil && e.State != event.Ended {
		before = e.State
		if facts.QueueID == "" {
			facts.QueueID = e.QueueID
		}
		if facts.AgentID == "" {
			facts.AgentID = e.AgentID
		}
	}
	sameAgent := e == nil || o.Facts.AgentID == "" || o.Facts.AgentID == e.AgentID
	if want == before && sameAgent || want == "" && before != "" || want == event.Ended && before == "" {
		return
	}
	queued := facts.QueueID != ""
	if before == "" { // the call began while the feed was disconnected
		entered := facts
		if queued {
			entered.AgentID, entered.AgentName, entered.State = "", "", event.Waiting
			if at := entered.TimestampMS - entered.WaitMS.Value; at > 0 {
				entered.TimestampMS = at
			}
			entered.WaitMS = event.Millis{}
			c.add(o.Account, event.NameQueueCallEntered, entered)
			before = event.Waiting
		} else {
			entered.State = event.Ringing
			c.add(o.Account, event.NameCallCreated, entered)
			before = event.Ringing
		}
		if want == before || want == "" {
			return
		}
	}
	if name := callChange(want, before, queued); name != "" {
		c.add(o.Account, name, facts)
	}
}

// callChange returns the name of the event that brings a call from one state to
// another.
func callChange(to, from event.State, queued bool) event.Name {
	switch to {
	case event.Waiting:
		if from == event.Ringing {
			return event.NameAgentNoAnswer
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
