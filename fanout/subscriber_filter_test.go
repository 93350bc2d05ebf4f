package fanout

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
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

func TestSubscriberGetsWhatItsTokenAdmits(t *testing.T) {
	for _, secure := range []bool{false, true} {
		log, directory := newMemoryLog(2), newDirectory()
		n := startNode(t, Config{}, log, directory, newPresence(), secure)
		for _, c := range []struct {
			name            string
			account         string
			accounts, types []string
			want            []int
		}{
			{"whole tree", "root", nil, nil, []int{0, 1, 3}},
			{"own account and below", "shop", nil, nil, []int{1, 3}},
			{"named account only", "root", []string{"shop"}, nil, []int{1}},
			{"named accounts", "root", []string{"kiosk", "root"}, nil, []int{0, 3}},
			{"type", "root", nil, []string{string(event.AgentState)}, []int{3}},
			{"another tree", "other", nil, nil, []int{2}},
		} {
			t.Run(c.name, func(t *testing.T) {
				sub := n.dial(t, directory.token(c.account, c.accounts, c.types), "")
				log.put(0, "root", event.QueueCall, 0)
				log.put(0, "shop", event.QueueCall, 1)
				log.put(0, "other", event.QueueCall, 2)
				log.put(0, "kiosk", event.AgentState, 3)
				last := log.put(0, c.account, event.AgentState, 4)

				if c.accounts != nil {
					last = log.put(0, c.accounts[0], event.AgentState, 5)
				}

				var got []int
				for {
					m := sub.next()
					if m["id"] == last[0].String() {
						break
					}
					if number(m) < 4 {
						got = append(got, number(m))
					}
				}

				if !slices.Equal(got, c.want) {
					t.Errorf("got %v, want %v", got, c.want)
				}
			})

			log.mu.Lock() // the next case begins with sources from 0 again
			log.partitions = make([][]kafka.Record, 2)
			log.mu.Unlock()

			n.close()
			n = startNode(t, Config{}, log, directory, newPresence(), secure)
		}
	}
}
