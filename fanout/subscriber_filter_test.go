package fanout

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
)

// factMessages are messages with every mixture of facts that a filter can tell apart.
var factMessages = []event.Facts{
	{},
	{Name: event.NameAgentLogin, AgentID: "1001@pbx"},
	{Name: event.NameQueueCallOffered, AgentID: "1001@pbx", QueueID: "sales", CallID: "c1"},
	{Name: event.NameQueueCallOffered, AgentID: "1002@pbx", QueueID: "sales", CallID: "c2"},
	{Name: event.NameQueueCallEntered, QueueID: "support", CallID: "c1"},
	{Name: event.NameCallEnded, CallID: "c2"},
	{Name: event.NameOther, CallID: strings.Repeat("x", identity.MaxFilterID+1)},
}

var factFilters = []struct {
	filter     identity.Filter
	want       []int                // of factMessages
	visibility *identity.Visibility // of a role; nil: a user's, who sees all
}{
	{identity.Filter{}, []int{0, 1, 2, 3, 4, 5, 6}, nil},
	{identity.Filter{AgentIDs: []string{"1001@pbx"}}, []int{1, 2}, nil},
	{identity.Filter{QueueIDs: []string{"sales", "none"}}, []int{2, 3}, nil},
	{identity.Filter{CallIDs: []string{"c1", "c2"}}, []int{2, 3, 4, 5}, nil},
	{identity.Filter{Names: []string{"queue.*"}}, []int{2, 3, 4}, nil},
	{identity.Filter{Names: []string{"agent.login", "call.*"}}, []int{1, 5}, nil},
	{identity.Filter{Names: []string{"other"}}, []int{0, 6}, nil},
	{identity.Filter{QueueIDs: []string{"sales"}, AgentIDs: []string{"1002@pbx"}}, []int{3}, nil},
	{identity.Filter{QueueIDs: []string{"support"}, Names: []string{"queue.call_offered"}}, nil, nil},
	{identity.Filter{AccountIDs: []string{"shop"}, CallIDs: []string{"c2"}, Names: []string{"call.*"}}, []int{5}, nil},
	{identity.Filter{AccountIDs: []string{"kiosk"}}, nil, nil},
	{identity.Filter{}, []int{0, 1, 2, 3, 4, 5, 6},
		identity.NewVisibility(identity.RoleAdmin, "root", "", identity.Limits{})},
	{identity.Filter{}, []int{2, 3},
		identity.NewVisibility(identity.RoleSupervisor, "root", "", identity.Limits{QueueIDs: []string{"sales"}})},
	{identity.Filter{}, nil,
		identity.NewVisibility(identity.RoleSupervisor, "root", "", identity.Limits{QueueIDs: []string{"elsewhere"}})},
	{identity.Filter{}, []int{1, 2, 3, 4},
		identity.NewVisibility(identity.RoleSupervisor, "root", "", identity.Limits{})},
	{identity.Filter{AgentIDs: []string{"1001@pbx"}}, []int{2},
		identity.NewVisibility(identity.RoleSupervisor, "root", "", identity.Limits{QueueIDs: []string{"sales"}})},
	{identity.Filter{}, []int{3},
		identity.NewVisibility(identity.RoleAgent, "root", "", identity.Limits{AgentIDs: []string{"1002@pbx"}})},
	{identity.Filter{QueueIDs: []string{"support"}}, nil,
		identity.NewVisibility(identity.RoleAgent, "root", "", identity.Limits{AgentIDs: []string{"1002@pbx"}})},
}

// TestFiltersNarrowEveryWayToTheEvents holds live delivery, replay with cursors and the
// event stream to the same filter of a login, and to the same role.
func TestFiltersNarrowEveryWayToTheEvents(t *testing.T) {
	log, directory := newMemoryLog(1), newDirectory()
	n := startNode(t, Config{}, log, directory, newPresence(), false)
	type listener struct {
		name string
		want []int
		got  func() map[string]any
	}

	put := func(from int64) {
		for i, facts := range factMessages {
			log.putFacts(0, "shop", event.QueueCall, facts, time.UnixMilli(1_795_000_000_000), time.Unix(1, 0),
				from+int64(i))
		}
	}

	put(0)
	var all []listener
	tokenOf := func(filter identity.Filter, visibility *identity.Visibility) string {
		token := directory.filteredToken("root", filter)
		if visibility != nil {
			directory.edit(func() { directory.visibilities[token] = visibility })
		}
		return token
	}

	for i, f := range factFilters {
		token := tokenOf(f.filter, f.visibility)

		live := n.dial(t, token, "")
		replay := n.dial(t, token, "since=earliest&cursor=true")
		for name, c := range map[string]*testClient{"live": live, "replay": replay} {
			want := f.want
			if name == "replay" {
				want = append(slices.Clone(want), want...)
			}

			all = append(all, listener{fmt.Sprint(i, " ", name), want, func() map[string]any {
				for {
					if m := c.next(); m["cursor"] == nil {
						return m
					}
				}
			}})
		}
	}

	put(100)
	for _, l := range all {
		var got []int
		for range l.want {
			got = append(got, number(l.got())%100)
		}

		if !slices.Equal(got, l.want) {
			t.Errorf("%s: got %v, want %v", l.name, got, l.want)
		}
	}

	for i, f := range factFilters {
		if len(f.want) == 0 {
			continue
		}

		r, err := http.NewRequestWithContext(t.Context(), "GET",
			n.url+"/stream?since=earliest&token="+tokenOf(f.filter, f.visibility), nil)
		if err != nil {
			t.Fatal(err)
		}

		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}

		var got []int
		for lines := bufio.NewScanner(answer.Body); len(got) < 2*len(f.want) && lines.Scan(); {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}

			var m map[string]any
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatal(err)
			}

			got = append(got, number(m)%100)
		}

		_ = answer.Body.Close()
		if want := append(slices.Clone(f.want), f.want...); !slices.Equal(got, want) {
			t.Errorf("%d event stream: got %v, want %v", i, got, want)
		}
	}
}

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
