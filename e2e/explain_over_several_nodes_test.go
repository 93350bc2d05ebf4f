package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
)

// explanation holds the members of an explanation that tests use.
type explanation struct {
	Connections []struct {
		Node, Username, Outcome string
		Code                    int
		FilteredBy              struct{ Field string } `json:"filtered_by"`
		ResumedFrom             string                 `json:"resumed_from"`
	}
	Missing  []string `json:"nodes_without_answer"`
	Complete bool
}

// awaitExplanation requests an explanation from a node until enough accepts it.
func (n *node) awaitExplanation(t *testing.T, token, id string, enough func(explanation) bool) (e explanation) {
	t.Helper()
	eventually(t, n.name+" to explain "+id, func() error {
		a := n.mustCall(t, http.MethodGet, "/api/v2/events/"+id+"/explain", bearer(token), "")
		e = explanation{}
		if err := json.Unmarshal(a.body, &e); err != nil || a.status != http.StatusOK || !enough(e) {
			return fmt.Errorf("%s %v", a, err)
		}
		return nil
	})

	return e
}

// outcomes returns the outcomes at the connections, by user and node.
func (e explanation) outcomes() (all map[string]int) {
	all = map[string]int{}
	for _, c := range e.Connections {
		all[c.Username+" "+c.Outcome]++
	}
	return all
}

// Every node, also one without connections, explains the outcome of an event at the connections
// of all nodes. The explanation lists a killed node as missing.
func TestExplainOverSeveralNodes(t *testing.T) {
	t.Parallel()
	c := splitRolesCluster(t)
	first, second := c.channelNodes[0], c.channelNodes[1]

	var portal portalSession
	eventually(t, "the login", func() error {
		a := c.ingestNode.mustCall(t, http.MethodPost, "/ucp/v2/login", nil,
			`{"username":"admin","password":"`+password+`","domain":"demo.local"}`)
		if err := json.Unmarshal(a.body, &portal); err != nil || portal.AccessToken == "" {
			return fmt.Errorf("%s %v", a, err)
		}
		return nil
	})

	token := first.login(t, apiPaths, user("alice"))
	alice := first.subscribe(t, subscription{paths: apiPaths, token: token, cursor: true})
	second.subscribe(t,
		subscription{paths: apiPaths, token: second.login(t, apiPaths, user("bob").types("AGENT_LOGOUT"))})

	post := func() {
		c.ingestNode.postAccepted(t, c.key, "generic", "application/json",
			`{"type":"AGENT_LOGIN","data":{"agent_id":"7001"}}`, 1)
	}

	post()
	id := alice.awaitCount(t, 1)[0].ID
	for _, n := range c.nodes {
		e := n.awaitExplanation(t, portal.AccessToken, id, func(e explanation) bool {
			return e.Complete && len(e.Connections) == 2 && e.outcomes()["alice delivered"] == 1 &&
				e.outcomes()["bob filtered"] == 1
		})
		if e.Connections[0].Node == e.Connections[1].Node || e.Connections[1].FilteredBy.Field != "event_types" {
			t.Errorf("%s: %+v", n.name, e)
		}
	}

	if a := c.ingestNode.mustCall(t, http.MethodGet, "/api/v2/events/"+id+"/explain", bearer(token),
		""); a.status != http.StatusForbidden {
		t.Errorf("a user's channel token: %s", a)
	}

	second.kill(t)
	e := c.ingestNode.awaitExplanation(t, portal.AccessToken, id,
		func(e explanation) bool { return !e.Complete && len(e.Connections) == 1 })
	if len(e.Missing) != 1 || e.outcomes()["alice delivered"] != 1 {
		t.Errorf("after the kill: %+v", e)
	}
}
