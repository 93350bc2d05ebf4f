package fanout

import (
	"sync"

	"trunkline/event"
)

// index finds the subscribers of a message, so that the cost of a message
// follows those who get it and not those who are connected.
//
// A subscriber stands in one of two maps: under the root of the tree it may
// see (no account filter), or under each account it named.
type index struct {
	mu    sync.RWMutex
	tree  map[string]*bucket
	exact map[string]*bucket
}

// bucket groups the subscribers of one account by the types they want.
type bucket struct{ groups []*group }

type group struct {
	bucket *bucket
	types  event.TypeSet
	subs   []member
}

// member is a subscriber's place in a group; slot says which of its seats
// points back here.
type member struct {
	sub  *subscriber
	slot int
}

// seat is the way back from a subscriber to its place in a group.
type seat struct {
	account string
	group   *group
	at      int
}

func newIndex() *index {
	return &index{tree: make(map[string]*bucket), exact: make(map[string]*bucket)}
}

func (x *index) add(s *subscriber) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.enter(s)
}

func (x *index) remove(s *subscriber) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.leave(s)
}

// narrow gives a subscriber another filter, with no message in between that
// sees it without one.
func (x *index) narrow(s *subscriber, f *filter) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(s.seats) == 0 { // it left meanwhile
		return
	}
	x.leave(s)
	s.filter.Store(f)
	x.enter(s)
}

func (x *index) enter(s *subscriber) {
	f := s.filter.Load()
	if f.accounts == nil {
		x.seat(x.tree, f.root, f.types, s)
		return
	}
	for account := range f.accounts {
		x.seat(x.exact, account, f.types, s)
	}
}

func (x *index) leave(s *subscriber) {
	where := x.exact
	if s.filter.Load().accounts == nil {
		where = x.tree
	}
	for _, seat := range s.seats {
		x.unseat(where, seat)
	}
	s.seats = nil
}

func (x *index) seat(where map[string]*bucket, account string, types event.TypeSet, s *subscriber) {
	b := where[account]
	if b == nil {
		b = &bucket{}
		where[account] = b
	}
	var g *group
	for _, have := range b.groups {
		if have.types == types {
			g = have
		}
	}
	if g == nil {
		g = &group{bucket: b, types: types}
		b.groups = append(b.groups, g)
	}
	g.subs = append(g.subs, member{s, len(s.seats)})
	s.seats = append(s.seats, seat{account, g, len(g.subs) - 1})
}

func (x *index) unseat(where map[string]*bucket, st seat) {
	g := st.group
	last := len(g.subs) - 1
	moved := g.subs[last]
	g.subs[st.at] = moved
	moved.sub.seats[moved.slot].at = st.at
	g.subs[last] = member{}
	g.subs = g.subs[:last]
	if last > 0 {
		return
	}
	b := g.bucket
	for i, have := range b.groups {
		if have == g {
			b.groups = append(b.groups[:i], b.groups[i+1:]...)
			break
		}
	}
	if len(b.groups) == 0 {
		delete(where, st.account)
	}
}

// match calls deliver for every subscriber of a message of the account whose
// path (the account, its parent, … the root) is given. The caller holds mu for
// reading.
func (x *index) match(class event.TypeSet, account string, path []string, deliver func(*subscriber)) {
	if b := x.exact[account]; b != nil {
		b.match(class, deliver)
	}
	for _, ancestor := range path {
		if b := x.tree[ancestor]; b != nil {
			b.match(class, deliver)
		}
	}
}

func (b *bucket) match(class event.TypeSet, deliver func(*subscriber)) {
	for _, g := range b.groups {
		if g.types&class == 0 {
			continue
		}
		for i := range g.subs {
			deliver(g.subs[i].sub)
		}
	}
}
