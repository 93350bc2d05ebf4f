package fanout

import (
	"sync"

	"trunkline/event"
)

// index finds the subscribers that match a message. The cost of a look-up depends on
// the number of matches, not on the number of connected subscribers.
//
// A subscriber without an account filter is listed in one map under the root of its
// accounts; one with an account filter is listed in the other map under each account
// that it names. Within an account it is listed under each agent, call or queue that
// its filter names, if it names any.
type index struct {
	mu    sync.RWMutex
	trees map[string]*bucket
	exact map[string]*bucket
}

// bucket holds the subscribers of one account: those without a filter by id, and those
// of each id.
type bucket struct {
	all  groups
	byID map[factID]groups
}

// factID is the id of an agent, call or queue, or the extension of an agent.
type factID struct {
	kind byte
	id   string
}

// The kinds of a factID.
const (
	noID byte = iota
	agentID
	callID
	queueID
	extensionID // the extension of an agent
)

// groups is a list of subscribers, grouped by event types.
type groups []*group

// group holds subscribers with the same event types.
type group struct {
	types   event.TypeSet
	entries []indexEntry
}

// indexEntry is a subscriber in a group; slot is the index, in its slots, of the slot
// that refers to this entry.
type indexEntry struct {
	sub      *subscriber
	slot     int
	anyFacts bool // its filter has no conditions on facts beyond the id under which it is listed
}

// indexSlot refers from a subscriber to its entry in a group.
type indexSlot struct {
	account string
	id      factID
	group   *group
	entry   int
}

// maxListings is the maximum number of index entries of a subscriber listed by ids. A
// subscriber with more, accounts times ids, is listed by account only.
const maxListings = 4096

func newIndex() *index {
	return &index{trees: make(map[string]*bucket), exact: make(map[string]*bucket)}
}

// replaceFilter replaces the filter of a listed subscriber atomically: no message is
// matched in between.
func (x *index) replaceFilter(s *subscriber, f *filter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.indexSlots) == 0 { // it has been removed
		return
	}
	x.delete(s)
	s.filter.Store(f)
	x.insert(s)
}

// insert lists a subscriber. The caller holds mu.
func (x *index) insert(s *subscriber) {
	f := s.filter.Load()
	if f.accounts == nil {
		insertAccount(x.trees, f.root, 1, f, s)
		return
	}
	for account := range f.accounts {
		insertAccount(x.exact, account, len(f.accounts), f, s)
	}
}

// insertAccount lists s in the bucket of one of its accounts. Of several kinds of ids
// it uses calls first and queues last: fewer messages have a given call than a given
// queue.
func insertAccount(buckets map[string]*bucket, account string, accounts int, f *filter, s *subscriber) {
	kinds := 0
	for _, ids := range [...]idSet{f.agents, f.calls, f.queues} {
		if ids != nil {
			kinds++
		}
	}

	anyFacts := f.names == event.EveryName && f.visibility == nil
	for _, by := range [...]struct {
		kind byte
		ids  idSet
	}{{callID, f.calls}, {agentID, f.agents}, {queueID, f.queues}, {agentID, f.ownAgents()}} {
		if by.ids == nil || accounts*len(by.ids) > maxListings {
			continue
		}

		for id := range by.ids {
			addEntry(buckets, account, factID{by.kind, id}, f, s, kinds == 1 && anyFacts)
		}

		return
	}

	addEntry(buckets, account, f.roleID(), f, s, kinds == 0 && anyFacts)
}

// ownAgents returns the agents to which an agent's role is limited.
func (f *filter) ownAgents() idSet {
	if f.visibility == nil {
		return nil
	}
	return newIDSet(f.visibility.Limits().AgentIDs)
}

// roleID returns the id under which an agent's role without named agents is listed: its
// extension.
func (f *filter) roleID() factID {
	if f.visibility == nil || f.visibility.Extension() == "" {
		return factID{}
	}
	return factID{extensionID, f.visibility.Extension()}
}

// delete removes a subscriber. The caller holds mu.
func (x *index) delete(s *subscriber) {
	buckets := x.exact
	if s.filter.Load().accounts == nil {
		buckets = x.trees
	}
	for _, slot := range s.indexSlots {
		removeEntry(buckets, slot)
	}
	s.indexSlots = nil
}

// addEntry adds a subscriber to the group of its event types, in an account's
// bucket, under id if it is not zero.
func addEntry(buckets map[string]*bucket, account string, id factID, f *filter, s *subscriber, anyFacts bool) {
	b := buckets[account]
	if b == nil {
		b = &bucket{}
		buckets[account] = b
	}

	in := b.all
	if id.kind != noID {
		in = b.byID[id]
	}

	var g *group
	for _, other := range in {
		if other.types == f.types {
			g = other
		}
	}

	if g == nil {
		g = &group{types: f.types}
		b.set(id, append(in, g))
	}

	g.entries = append(g.entries, indexEntry{s, len(s.indexSlots), anyFacts})
	s.indexSlots = append(s.indexSlots, indexSlot{account, id, g, len(g.entries) - 1})
}

// set replaces the groups under id.
func (b *bucket) set(id factID, gs groups) {
	switch {
	case id.kind == noID:
		b.all = gs
	case len(gs) == 0:
		delete(b.byID, id)
	default:
		if b.byID == nil {
			b.byID = make(map[factID]groups)
		}
		b.byID[id] = gs
	}
}

// removeEntry removes the entry that a slot refers to: the last entry of the
// group takes its place. Groups and buckets that become empty are removed.
func removeEntry(buckets map[string]*bucket, slot indexSlot) {
	g := slot.group
	last := len(g.entries) - 1
	moved := g.entries[last]
	g.entries[slot.entry] = moved
	moved.sub.indexSlots[moved.slot].entry = slot.entry
	g.entries[last] = indexEntry{}
	g.entries = g.entries[:last]

	if last > 0 {
		return
	}

	b := buckets[slot.account]
	in := b.all
	if slot.id.kind != noID {
		in = b.byID[slot.id]
	}

	for i, other := range in {
		if other == g {
			in = append(in[:i], in[i+1:]...)
			break
		}
	}

	b.set(slot.id, in)
	if len(b.all) == 0 && len(b.byID) == 0 {
		delete(buckets, slot.account)
	}
}

// match calls deliver for every subscriber that matches a message. path is the
// message's account, its parent, and so on up to the root. The caller holds mu for
// reading.
func (x *index) match(m *frame, path []string, deliver func(*subscriber)) {
	b := x.exact[m.account]
	if b != nil {
		b.match(m, deliver)
	}

	for _, ancestor := range path {
		b := x.trees[ancestor]
		if b != nil {
			b.match(m, deliver)
		}
	}
}

// each calls give at least once for every subscriber with access to an account; path
// is as in match. The caller holds mu.
func (x *index) each(account string, path []string, give func(*subscriber)) {
	x.exact[account].each(give)
	for _, ancestor := range path {
		x.trees[ancestor].each(give)
	}
}

func (b *bucket) each(give func(*subscriber)) {
	if b == nil {
		return
	}
	b.all.each(give)
	for _, gs := range b.byID {
		gs.each(give)
	}
}

func (gs groups) each(give func(*subscriber)) {
	for _, g := range gs {
		for i := range g.entries {
			give(g.entries[i].sub)
		}
	}
}

func (b *bucket) match(m *frame, deliver func(*subscriber)) {
	b.all.match(m, deliver)
	if b.byID == nil {
		return
	}

	agent := m.ids.agent()
	for _, id := range [...]factID{{agentID, agent}, {extensionID, event.AgentExtension(agent)}, {callID, m.ids.call()},
		{queueID, m.ids.queue()}} {
		if id.id != "" {
			b.byID[id].match(m, deliver)
		}
	}
}

func (gs groups) match(m *frame, deliver func(*subscriber)) {
	for _, g := range gs {
		if g.types&m.typeBits == 0 {
			continue
		}

		for i := range g.entries {
			e := &g.entries[i]
			// The id under which it is listed matches already; only further conditions cost a look at the filter.
			if e.anyFacts || e.sub.filter.Load().matchesFacts(m) {
				deliver(e.sub)
			}
		}
	}
}
