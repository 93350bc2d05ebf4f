package state

import (
	"cmp"
	"maps"
	"slices"

	"trunkline/event"
)

const (
	// maxPerAccount bounds the entries of one kind, account and partition.
	maxPerAccount = 1 << 15
	// maxExpirePerEvent bounds the entries that expire with one event. It is more than an
	// event can add, so that after a quiet time the expired entries are deleted soon,
	// in batches that fit in a request.
	maxExpirePerEvent = 8
)

// Partition keeps the state of one partition while its events are normalized. It can
// return to the state before events that were not written after all (Mark, Rollback).
// It is not safe for concurrent use.
type Partition struct {
	entries    map[Key]*node
	classHeads [classCount]node // heads of the lists of lifetime classes, least recent event first
	accounts   map[string]*accountLists
	sizes      [kindCount]int // by Kind.index
	lastFolded event.ID       // last folded event
	durable    event.ID       // lastFolded at the last Commit
	limits     [kindCount]int // maximum number of values of a kind and account

	journal      []replacement // since the last Commit
	changedBytes int           // see Bytes
	batch        uint32        // number of Commits
}

// replacement records one replacement of an entry; Rollback undoes them in reverse
// order.
type replacement struct {
	key           Key
	before, after *node    // nil: none
	id            event.ID // of the event that replaced it
	bytes         int      // Partition.changedBytes before the replacement
}

// node is an element of the lists of its class and of its account. A removed node
// keeps its neighbours, so that undoing all later changes in reverse order can insert
// it again.
type node struct {
	value              Value
	batch              uint32 // Partition.batch at its creation
	inClass, inAccount listLinks
}

type listLinks struct{ before, after *node }

// accountLists holds the heads of the lists of an account's entries, by Kind.index.
type accountLists struct {
	heads [kindCount]node
	sizes [kindCount]int
}

// kindCount is the number of kinds of values.
const kindCount = 4

// index returns the index of a kind in arrays.
func (k Kind) index() int {
	switch k {
	case Agent:
		return 0
	case Call:
		return 1
	case Device:
		return 2
	}
	return 3
}

// NewPartition returns the state before any event.
func NewPartition() *Partition {
	p := &Partition{entries: map[Key]*node{}, accounts: map[string]*accountLists{},
		limits: [kindCount]int{maxPerAccount, maxPerAccount, maxPerAccount, maxNumbers}}
	for i := range p.classHeads {
		p.classHeads[i].inClass = listLinks{&p.classHeads[i], &p.classHeads[i]}
	}
	return p
}

// Load copies the state of a view of cc.state, and sets the last folded event to that
// of its position. The partition must be new.
func (p *Partition) Load(v *View) {
	var all []*node
	v.Values(func(value Value) { all = append(all, &node{value: value}) })
	// In the order of the lists, so that place finds each one's neighbours at once.
	slices.SortFunc(all, func(a, b *node) int {
		byEvent := cmp.Compare(a.value.lastEvent(), b.value.lastEvent())
		if byEvent != 0 {
			return byEvent
		}
		return compareKeys(a.value.Key(), b.value.Key())
	})

	for _, n := range all {
		p.attach(n)
	}

	if v.folded != nil {
		p.Start(v.folded.EventID)
	}
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
}

// Start sets the last folded event of a new partition: its state is empty after that
// event.
func (p *Partition) Start(last event.ID) { p.lastFolded, p.durable = last, last }

// Last returns the last folded event; 0: none.
func (p *Partition) Last() event.ID { return p.lastFolded }

// Size returns the number of entries of a kind.
func (p *Partition) Size(k Kind) int { return p.sizes[k.index()] }

// Find returns an entry, or nil.
func (p *Partition) Find(k Key) *Entry {
	n := p.entries[k]
	if n != nil {
		return entryOf(n.value)
	}
	return nil
}

// All returns all entries, ordered by key.
func (p *Partition) All() []*Entry {
	all := make([]*Entry, 0, len(p.entries))
	for _, value := range p.Values() {
		e := entryOf(value)
		if e != nil {
			all = append(all, e)
		}
	}
	return all
}

// Values returns all entries and numbers, ordered by key.
func (p *Partition) Values() []Value {
	keys := slices.SortedFunc(maps.Keys(p.entries), compareKeys)
	all := make([]Value, len(keys))
	for i, k := range keys {
		all[i] = p.entries[k].value
	}
	return all
}

// RollbackPoint is a state of a partition to which Rollback can return, until the next Commit.
type RollbackPoint struct {
	changes int
	last    event.ID
}

// Mark returns the current state as a point for Rollback.
func (p *Partition) Mark() RollbackPoint { return RollbackPoint{len(p.journal), p.lastFolded} }

// Rollback returns to the state at m.
func (p *Partition) Rollback(m RollbackPoint) {
	for i := len(p.journal) - 1; i >= m.changes; i-- {
		c := &p.journal[i]
		if c.after != nil {
			p.detach(c.after)
		}
		if c.before != nil {
			p.reattach(c.before)
		}

		p.changedBytes = c.bytes
		*c = replacement{}
	}

	p.journal, p.lastFolded = p.journal[:m.changes], m.last
}

// Reset returns to the state at the last Commit.
func (p *Partition) Reset() { p.Rollback(RollbackPoint{0, p.durable}) }

// Change is the new value of a key.
type Change struct {
	Key     Key
	Value   Value // nil: deleted
	EventID event.ID
}

// Bytes estimates the size of the change's record.
func (c *Change) Bytes() int { return recordBytes(c.Value) }

// Bytes estimates the size of the records that changed since the last Commit.
func (p *Partition) Bytes() int { return p.changedBytes }

// Commit makes the changes since the last Commit final, and calls give with the last
// change of each value.
func (p *Partition) Commit(give func(Change)) {
	for i := range p.journal {
		c := &p.journal[i]
		if p.entries[c.key] != c.after {
			continue // changed again later
		}

		if c.after != nil {
			give(Change{c.key, c.after.value, c.id})
		} else {
			give(Change{c.key, nil, c.id})
		}
	}

	clear(p.journal)
	p.journal, p.changedBytes, p.durable = p.journal[:0], 0, p.lastFolded
	p.batch++
}

// set replaces the value of a key with event id; nil deletes it.
func (p *Partition) set(key Key, value Value, id event.ID) {
	c := replacement{key: key, before: p.entries[key], id: id, bytes: p.changedBytes}
	// It replaces a value of this batch, of which only the last is written.
	if c.before != nil && c.before.batch == p.batch {
		p.changedBytes -= recordBytes(c.before.value)
	}

	switch {
	case value == nil:
		p.detach(c.before)
	case c.before == nil:
		c.after = &node{value: value, batch: p.batch}
		p.attach(c.after)
	default:
		c.after = &node{value: value, batch: p.batch}
		c.before.unlink()
		p.place(c.after)
		c.after.link()
		p.entries[key] = c.after
	}

	p.changedBytes += recordBytes(value)
	p.journal = append(p.journal, c)
}

// recordBytes estimates the size of a value's record; nil is a tombstone.
func recordBytes(v Value) int {
	const framing = 64 + 24
	if v == nil {
		return framing + len("identity") + 2*maxTextBytes
	}
	return v.estimatedSize()
}

// estimatedSize estimates the size of the entry's record: an upper bound, unless its texts
// need escapes.
func (e *Entry) estimatedSize() int {
	const framing, members = 64, 475
	n := framing + members + 2*(len(e.AccountID)+len(e.ID)) +
		len(e.AgentID) + len(e.AgentName) + len(e.QueueID) + len(e.CallID) + len(e.InteractionID) +
		len(e.OriginationCallID) + len(e.Caller) + len(e.Callee) + len(e.Reason) + len(e.Source)

	for _, texts := range [...][]string{e.Queues, e.Ringing, e.Contacts} {
		for _, text := range texts {
			n += len(text) + 3
		}
	}

	return n + e.KnownAgent.estimatedSize() + e.History.estimatedSize()
}

// attach adds a node.
func (p *Partition) attach(n *node) {
	p.place(n)
	p.reattach(n)
}

// place finds a node's neighbours in the lists of its class and account. Lists are
// ordered by event id and, for entries changed by the same event, by key, as in Load.
func (p *Partition) place(n *node) {
	key := n.value.Key()

	head, own, kind := &p.classHeads[n.value.class()], p.listsOf(key), key.Kind.index()
	last := head.inClass.before
	for last != head && n.precedes(last) {
		last = last.inClass.before
	}

	n.inClass = listLinks{last, last.inClass.after}
	head = &own.heads[kind]
	for last = head.inAccount.before; last != head && n.precedes(last); {
		last = last.inAccount.before
	}

	n.inAccount = listLinks{last, last.inAccount.after}
}

// precedes reports whether n, which is the newest, still stands before o in their lists: by its key.
func (n *node) precedes(o *node) bool {
	return n.value.lastEvent() == o.value.lastEvent() && compareKeys(n.value.Key(), o.value.Key()) < 0
}

// reattach inserts a node between its neighbours.
func (p *Partition) reattach(n *node) {
	n.link()
	key := n.value.Key()
	p.entries[key] = n
	p.count(key, 1)
}

func (p *Partition) detach(n *node) {
	n.unlink()
	key := n.value.Key()
	delete(p.entries, key)
	p.count(key, -1)
}

func (n *node) link() {
	n.inClass.before.inClass.after, n.inClass.after.inClass.before = n, n
	n.inAccount.before.inAccount.after, n.inAccount.after.inAccount.before = n, n
}

func (n *node) unlink() {
	n.inClass.before.inClass.after, n.inClass.after.inClass.before = n.inClass.after, n.inClass.before
	n.inAccount.before.inAccount.after, n.inAccount.after.inAccount.before = n.inAccount.after, n.inAccount.before
}

// count adds n to the numbers of values of a key's kind.
func (p *Partition) count(k Key, n int) {
	p.sizes[k.Kind.index()] += n
	p.accounts[k.Account].sizes[k.Kind.index()] += n
}

// listsOf returns the lists of a key's account. Empty lists are kept: their number is
// bounded by the accounts in the directory.
func (p *Partition) listsOf(k Key) *accountLists {
	own := p.accounts[k.Account]
	if own == nil {
		own = &accountLists{}
		for i := range own.heads {
			own.heads[i].inAccount = listLinks{&own.heads[i], &own.heads[i]}
		}
		p.accounts[k.Account] = own
	}
	return own
}

// advance makes id the last folded event and deletes the entries that have expired by
// then.
func (p *Partition) advance(id event.ID) {
	previous := p.lastFolded
	p.lastFolded = id

	expired := 0
	for i := range p.classHeads {
		// Each turn removes the first of the list, so the next one is the first again.
		head, age := &p.classHeads[i], event.ID(classAges[i])
		for n := head.inClass.after; n != head && n.value.lastEvent()+age <= id &&
			expired < maxExpirePerEvent; n = head.inClass.after {
			p.set(n.value.Key(), nil, id)
			expired++
			if e, ok := n.value.(*Entry); ok && e.Kind == Call {
				p.releaseExpired(e, previous, id)
			}
		}
	}
}

// put sets an entry changed by event id, unless it equals before and that was written less than refreshAge ago.
func (p *Partition) put(e, before *Entry, id event.ID) {
	if before != nil && same(e, before) && before.EventID+event.ID(refreshAge) > id {
		return
	}
	e.EventID = id
	value := e.compact()
	p.set(value.Key(), value, id)
	p.makeRoom(e.Key(), id)
}

// maxBeforeEnded bounds the search of makeRoom.
const maxBeforeEnded = 1 << 10

// makeRoom deletes a value of the key's kind and account if there are too many: of the
// least recent ones the first that has ended, else the very first. An account with many
// calls would otherwise lose those under way and keep those that ended after they began.
func (p *Partition) makeRoom(k Key, id event.ID) {
	own, kind := p.accounts[k.Account], k.Kind.index()
	if own.sizes[kind] <= p.limits[kind] {
		return
	}

	head := &own.heads[kind]
	leastRecent := head.inAccount.after
	unwanted := leastRecent
	n := leastRecent

	for range maxBeforeEnded {
		if n == head {
			break
		}
		if n.value.class() == endedClass && n.value.Key() != k {
			unwanted = n
			break
		}
		n = n.inAccount.after
	}

	p.set(unwanted.value.Key(), nil, id)
}

// same reports whether the entries are equal except for their event ids.
func same(a, b *Entry) bool {
	return a.Since == b.Since && a.Facts == b.Facts && a.Source == b.Source && a.EnteredMS == b.EnteredMS &&
		a.AnsweredMS == b.AnsweredMS && a.AfterCall == b.AfterCall &&
		a.LegOutlivesVisit == b.LegOutlivesVisit && slices.Equal(a.Queues, b.Queues) &&
		slices.Equal(a.Ringing, b.Ringing) &&
		slices.Equal(a.Contacts, b.Contacts) &&
		a.KnownAgent.equal(b.KnownAgent) && a.History.equal(b.History)
}
