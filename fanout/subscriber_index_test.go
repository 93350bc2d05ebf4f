package fanout

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"trunkline/event"
	"trunkline/identity"
)

// TestTheIndexMatchesWhatTheFiltersAdmit compares the index with the filters
// themselves, over random filters that come, change and go.
func TestTheIndexMatchesWhatTheFiltersAdmit(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	directory := newDirectory()
	tree := directory.tree
	accounts := []string{"root", "shop", "kiosk", "other"}

	some := func(prefix string, most int) (ids []string) {
		if random.IntN(2) == 0 {
			return nil
		}

		for range 1 + random.IntN(3) {
			ids = append(ids, fmt.Sprint(prefix, random.IntN(most)))
		}

		return ids
	}

	var randomFilter func() *filter
	randomFilter = func() *filter {
		p := &identity.Principal{AccountID: accounts[random.IntN(len(accounts))], Filter: identity.Filter{
			AgentIDs: some("a", 4), QueueIDs: some("q", 3), CallIDs: some("c", 5)}}
		if random.IntN(2) == 0 {
			p.Names = []string{[]string{"agent.*", "call.ended", "other", "queue.*"}[random.IntN(4)]}
		}
		if random.IntN(2) == 0 {
			p.EventTypes = []string{string([]event.Type{event.AgentLogin, event.QueueCall}[random.IntN(2)])}
		}
		if random.IntN(3) == 0 {
			p.AccountIDs = []string{p.AccountID}
		}

		if random.IntN(20) == 0 { // more than the index lists
			for i := range maxListings + 1 {
				p.CallIDs = append(p.CallIDs, fmt.Sprint("c", i))
			}
		}

		p.TokenID = fmt.Sprint("random", len(directory.visibilities))
		limits := identity.Limits{QueueIDs: some("q", 3), AgentIDs: some("a", 4)}
		directory.visibilities[p.TokenID] = identity.NewVisibility(identity.Roles()[random.IntN(len(identity.Roles()))],
			p.AccountID, fmt.Sprint("a", random.IntN(4)), limits)

		if f := newFilter(p, directory); f != nil {
			return f
		}

		return randomFilter() // an auditor's
	}

	x := newIndex()
	var subscribers []*subscriber
	for step := range 2000 {
		switch random.IntN(4) {
		case 0, 1:
			s := &subscriber{}
			s.filter.Store(randomFilter())
			x.add(s)
			subscribers = append(subscribers, s)
		case 2:
			if len(subscribers) > 0 {
				x.replaceFilter(subscribers[random.IntN(len(subscribers))], randomFilter())
			}
		case 3:
			if len(subscribers) > 0 {
				i := random.IntN(len(subscribers))
				x.delete(subscribers[i])
				subscribers = slices.Delete(subscribers, i, i+1)
			}
		}

		if step%10 != 0 {
			continue
		}

		names := event.Names()
		m := frame{account: accounts[random.IntN(len(accounts))],
			name: event.NameBit([]byte(names[random.IntN(len(names))]))}
		types := []event.Type{event.AgentLogin, event.QueueCall, event.Custom}
		m.typeBits = event.TypeClassOf(types[random.IntN(len(types))], "svc.cc", "")
		var text strings.Builder

		first := func(ids []string) []byte {
			if len(ids) == 0 {
				return nil
			}
			return []byte(ids[0])
		}

		m.ids = newFactIDs(&text, first(some("a", 4)), first(some("q", 3)), first(some("c", 5)),
			[]byte(strings.Join(some("q", 3), event.QueueSeparator)))
		want, got := make(map[*subscriber]int), make(map[*subscriber]int)

		for _, s := range subscribers {
			if s.filter.Load().matches(&m, tree) {
				want[s]++
			}
		}

		x.match(&m, tree.Path(m.account), func(s *subscriber) { got[s]++ })
		if len(got) != len(want) {
			t.Fatalf("step %d: %d subscribers matched, %d filters admit", step, len(got), len(want))
		}

		for s, times := range got {
			if times != 1 || want[s] != 1 {
				t.Fatalf("step %d: matched %d times, admitted: %t", step, times, want[s] == 1)
			}
		}
	}

	for _, s := range subscribers {
		x.delete(s)
	}

	if len(x.trees)+len(x.exact) != 0 {
		t.Errorf("%d trees and %d accounts are left of nobody", len(x.trees), len(x.exact))
	}
}

// add lists a subscriber.
func (x *index) add(s *subscriber) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.insert(s)
}
