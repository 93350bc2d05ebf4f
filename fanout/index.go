package fanout

import (
	"sync"

	"trunkline/event"
)

// index finds the subscribers that match a message, so that a message costs as
// much as it has matches, however many subscribers are connected.
//
// A subscriber is listed in one of two maps: under the root of the account tree
// that it sees, if it has no account filter, or under each account that its
// filter names.
type index struct {
	mu    sync.RWMutex
	trees map[string]*bucket
	exact map[string]*bucket
}

// bucket holds the subscribers of one account, grouped by event types.
type bucket struct{ groups []*group }

// group holds the subscribers of one account with the same event types.
type group struct {
	bucket  *bucket
	types   event.TypeSet
	entries []indexEntry
}

// indexEntry is a subscriber in a group; slot is the index in its slots of the
// one that refers to this entry.
type indexEntry struct {
	sub  *subscriber
	slot int
}

// indexSlot refers from a subscriber to its entry in a group.
type indexSlot struct {
	account string
	group   *group
	entry   int
}

func newIndex() *index {
	return &index{trees: make(map[string]*bucket), exact: make(map[string]*bucket)}
}

// add lists a subscriber.
func (x *index) add(s *subscriber) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.insert(s)
}

// remove takes a subscriber out of all lists.
func (x *index) remove(s *subscriber) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.delete(s)
}

// replaceFilter gives a listed subscriber another filter. No message is matched
// in between.
func (x *index) replaceFilter(s *subscriber, f *filter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.slots) == 0 { // it was removed meanwhile
		return
	}
	x.delete(s)
	s.filter.Store(f)
	x.insert(s)
}

// insert is add, with mu held.
func (x *index) insert(s *subscriber) {
	f := s.filter.Load()
	if f.accounts == nil {
		addEntry(x.trees, f.root, f.types, s)
		return
	}
	for account := range f.accounts {
		addEntry(x.exact, account, f.types, s)
	}
}

// delete is remove, with mu held.
func (x *index) delete(s *subscriber) {
	buckets := x.exact
	if s.filter.Load().accounts == nil {
		buckets = x.trees
	}
	for _, slot := range s.slots {
		removeEntry(buckets, slot)
	}
	s.slots = nil
}

// addEntry adds a subscriber to an account's group of those event types.
func addEntry(buckets map[string]*bucket, account string, types event.TypeSet, s *subscriber) {
	b := buckets[account]
	if b == nil {
		b = &bucket{}
		buckets[account] = b
	}
	var g *group
	for _, other := range b.groups {
		if other.types == types {
			g = other
		}
	}
	if g == nil {
		g = &group{bucket: b, types: types}
		b.groups = append(b.groups, g)
	}
	g.entries = append(g.entries, indexEntry{s, len(s.slots)})
	s.slots = append(s.slots, indexSlot{account, g, len(g.entries) - 1})
}

// removeEntry removes the entry that a slot refers to: the last entry of the
// group takes its place. Groups and buckets that become empty are removed.
func removeEntry(buckets map[string]*bucket, slot indexSlot) {
	g := slot.group
	last := len(g.entries) - 1
	moved := g.entries[last]
	g.entries[slot.entry] = moved
	moved.sub.slots[moved.slot].entry = slot.entry
	g.entries[last] = indexEntry{}
	g.entries = g.entries[:last]
	if last > 0 {
		return
	}
	b := g.bucket
	for i, other := range b.groups {
		if other == g {
			b.groups = append(b.groups[:i], b.groups[i+1:]...)
			break
		}
	}
	if len(b.groups) == 0 {
		delete(buckets, slot.account)
	}
}

// match calls deliver for every subscriber that matches a message of the
// account. path is the account, its parent, and so on to the root. The caller
// holds mu for reading.
func (x *index) match(class event.TypeSet, account string, path []string, deliver func(*subscriber)) {
	if b := x.exact[account]; b != nil {
		b.match(class, deliver)
	}
	for _, ancestor := range path {
		if b := x.trees[ancestor]; b != nil {
			b.match(class, deliver)
		}
	}
}

func (b *bucket) match(class event.TypeSet, deliver func(*subscriber)) {
	for _, g := range b.groups {
		if g.types&class == 0 {
			continue
		}
		for i := range g.entries {
			deliver(g.entries[i].sub)
		}
	}
}
