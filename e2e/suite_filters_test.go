package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
)

func (c *cluster) testFilters(t *testing.T) {
	w := c.createAccountAndUser(t, "filters", "demo")
	c.createAccountAndUser(t, "filters-east", "filters")
	c.createAccountAndUser(t, "filters-west", "filters")
	c.createAccountAndUser(t, "stranger", "demo")
	n := c.lastChannelNode()
	listen := func(w credentials) *subscriber {
		return n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, wsPaths, w)})
	}
	all, east, logins := listen(w), listen(w.accounts("filters-east")), listen(w.types("AGENT_LOGIN", "AGENT_LOGOUT"))
	both := listen(w.accounts("filters-west", "filters").types("svc_cc_queue_on_call_event"))
	whole := listen(user("alice").accounts("filters", "filters-east", "filters-west", "stranger"))

	posted := []struct{ account, kind string }{
		{"filters", "AGENT_LOGIN"}, {"filters-east", "svc_cc_queue_on_call_event"}, {"stranger", "AGENT_LOGIN"},
		{"filters-west", "svc_cc_queue_on_call_event"}, {"filters-west", "AGENT_LOGOUT"},
		{"filters-east", "AGENT_LOGIN"},
		{"filters", "svc_cc_queue_on_call_event"}, {"stranger", "svc_cc_queue_on_call_event"},
	}

	for i, p := range posted {
		c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON,
			fmt.Sprintf(`{"Account-ID":%q,"Type":%q,"n":%d}`, p.account, p.kind, i), 1)
	}

	// Once the subscriber of all accounts has received everything, one more event in each account
	// shows that no other event is on its way.
	whole.awaitCount(t, len(posted))
	for i, account := range []string{"filters", "filters-east", "filters-west", "stranger"} {
		for j, kind := range []string{"AGENT_LOGIN", "svc_cc_queue_on_call_event"} {
			c.ingestNode.postAccepted(t, c.key, "svc.cc", typeJSON,
				fmt.Sprintf(`{"Account-ID":%q,"Type":%q,"n":%d}`, account, kind, 100+10*i+j), 1)
		}
	}

	for _, want := range []struct {
		name string
		s    *subscriber
		n    []int // sorted
	}{
		{"a whole account with those below it", all, []int{0, 1, 3, 4, 5, 6, 100, 101, 110, 111, 120, 121}},
		{"one sub-account", east, []int{1, 5, 110, 111}},
		{"two types", logins, []int{0, 4, 5, 100, 110, 120}},
		{"accounts and a type", both, []int{3, 6, 101, 121}},
		{"an ancestor's user who asks for them all", whole,
			[]int{0, 1, 2, 3, 4, 5, 6, 7, 100, 101, 110, 111, 120, 121, 130, 131}},
	} {
		got := numbers(t, want.s.awaitCount(t, len(want.n)))
		slices.Sort(got)
		if !slices.Equal(got, want.n) {
			t.Errorf("%s: got %v, want %v", want.name, got, want.n)
		}
	}

	for name, bad := range map[string]credentials{
		"an account that is not below": w.accounts("stranger"), "an account that is not": w.accounts("nowhere"),
		"the parent": w.accounts("demo"), "an unknown type": w.types("AGENT_LOGIN", "NOPE"),
	} {
		if a := n.tryLogin(t, apiPaths, bad); a.status != http.StatusBadRequest {
			t.Errorf("a login that asks for %s: %s", name, a)
		}
	}
}
