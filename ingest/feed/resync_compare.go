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
	source     string // of the feed's records
	entries    map[state.Key]*state.Entry
	byID       map[objectID][]*state.Entry          // in all accounts
	previous   *comparisonRound                     // nil in the first round
	isChanging func(id string, e *state.Entry) bool // see compare

	result     comparisonRound
	endedCalls map[string]bool   // calls that the platform no longer has
	agents     map[string]Object // of the snapshot
}

// objectID identifies an object of a platform whose account is not known.
type objectID struct {
	kind state.Kind
	id   string
}

// comparisonRound is the outcome of a comparison.
type comparisonRound struct {
	differences  []difference
	unsettledIDs map[string]bool    // ids of the objects to compare again in the next round
	missingCalls map[state.Key]bool // those of them that are calls missing for the first time
}

// compare returns the differences between the snapshot and the entries, calls before agents, because
// the end of a call changes its agent. A further round compares only the objects that the round before
// left open. Objects for which isChanging returns true are left open; e is nil for objects without an entry.
// A call ends only if it is missing in two rounds, because a platform may delete it shortly before it
// sends the event of its end.
func compare(snapshot Snapshot, entries []*state.Entry, source string, previous *comparisonRound,
	isChanging func(id string, e *state.Entry) bool) *comparisonRound {
	c := &comparison{
		source: source, entries: map[state.Key]*state.Entry{}, byID: map[objectID][]*state.Entry{}, previous: previous,
		isChanging: isChanging,
		result:     comparisonRound{unsettledIDs: map[string]bool{}, missingCalls: map[state.Key]bool{}},
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
	complete := slices.Contains(snapshot.CompleteKinds, kind)
	// pair is an object and its entry, nil if it has none.
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
			// Only this feed's own: what another platform reports is not missing here.
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

// isSkipped reports whether an object is not compared in this round. One that changes is left for the next.
func (c *comparison) isSkipped(id string, e *state.Entry) bool {
	if c.previous != nil && !c.previous.unsettledIDs[id] {
		return true
	}
	// The rest of the round counts it as changing too, by whatever kind it is met again.
	if c.isChanging(id, e) {
		c.result.unsettledIDs[id] = true
	}
	return c.result.unsettledIDs[id]
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
		c.result.unsettledIDs[e.ID] = true
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

// endOf returns when a call that is missing ended, Unix milliseconds, by what the platform reports of the
// last call of the agent who talked on it; 0: unknown.
func (c *comparison) endOf(call *state.Entry) int64 {
	agent, ok := c.agents[call.AgentID]
	talked := call.State == event.Talking || call.State == event.Held
	if !ok || !talked || agent.Account != "" && agent.Account != call.AccountID || agent.LastCallMS/1000 < call.Since {
		return 0
	}
	return agent.LastCallMS
}
