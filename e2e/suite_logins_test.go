package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func (c *cluster) testLogins(t *testing.T) {
	for _, n := range c.nodes {
		var keys struct {
			Keys []map[string]string `json:"keys"`
		}
		n.read(t, "/.well-known/jwks.json", nil, &keys)

		if len(keys.Keys) == 0 || keys.Keys[0]["kty"] != "OKP" || keys.Keys[0]["crv"] != "Ed25519" ||
			keys.Keys[0]["d"] != "" {
			t.Errorf("%s serves the keys %v", n.name, keys)
		}
	}

	portal := c.portalLogin(t, user("alice"))
	if portal.User["username"] != "alice" || portal.User["presence_id"] != "1001" ||
		portal.User["account_id"] != "demo" {
		t.Errorf("user %v", portal.User)
	}

	n := c.otherNode()
	n.mustRefuse(t, subscription{paths: wsPaths, token: portal.AccessToken}, http.StatusForbidden)
	n.mustRefuse(t, subscription{paths: apiPaths, token: portal.AccessToken, sse: true}, http.StatusForbidden)
	wrong := user("alice")
	wrong.Password = "wrong"

	if a := n.tryLogin(t, wsPaths, wrong); a.status != http.StatusUnauthorized {
		t.Errorf("a wrong password: %s", a)
	}

	// A token of one node and path set is valid at the others.
	token := c.channel[0].login(t, apiPaths, user("bob"))
	c.otherNode().subscribe(t, subscription{paths: wsPaths, token: token}).close()
}

// portalSession is the response of the portal login.
type portalSession struct {
	User         map[string]any `json:"user"`
	AccessToken  string         `json:"access_token"`
	RefreshToken string         `json:"refresh_token"`
	ExpiresIn    int64          `json:"expires_in"`
}

func (c *cluster) portalLogin(t testing.TB, w credentials) portalSession {
	t.Helper()
	body, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}

	a := c.ingest.mustCall(t, http.MethodPost, "/ucp/v2/login", map[string]string{"Content-Type": typeJSON},
		string(body))
	var s portalSession
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK || s.AccessToken == "" {
		t.Fatalf("portal login answers %s", a)
	}

	return s
}

func (c *cluster) testFilters(t *testing.T) {
	w := c.account(t, "filters", "demo")
	c.account(t, "filters-east", "filters")
	c.account(t, "filters-west", "filters")
	c.account(t, "stranger", "demo")
	n := c.otherNode()
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
		c.ingest.postAccepted(t, c.key, "svc.cc", typeJSON,
			fmt.Sprintf(`{"Account-ID":%q,"Type":%q,"n":%d}`, p.account, p.kind, i), 1)
	}

	// Once the subscriber of all accounts has received everything, one more event in each account
	// shows that no other event is on its way.
	whole.awaitCount(t, len(posted))
	for i, account := range []string{"filters", "filters-east", "filters-west", "stranger"} {
		for j, kind := range []string{"AGENT_LOGIN", "svc_cc_queue_on_call_event"} {
			c.ingest.postAccepted(t, c.key, "svc.cc", typeJSON,
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

func (c *cluster) testCommandsBeside(t *testing.T) {
	w := c.account(t, "beside", "demo")
	n := c.otherNode()
	token := n.login(t, apiPaths, w)
	s := n.subscribe(t, subscription{paths: apiPaths, token: token})

	// The promise is a second; the condition is generous, the log shows the time.
	began := time.Now()
	c.ingest.cli(t, "account", "create", "below", "--id", "below", "--domain", "below.test", "--parent", "beside")
	key := c.ingest.cli(t, "apikey", "create", "--account", "beside")
	made := time.Now()

	for i := 0; len(s.events()) == 0; i++ {
		a := c.ingest.post(t, key, "svc.cc", typeJSON, record("below", i))
		if a.status != http.StatusAccepted && a.status != http.StatusUnauthorized && a.status != http.StatusForbidden ||
			time.Since(made) > patience {
			t.Fatalf("with the new key, for the new account: %s", a)
		}
	}

	t.Logf("commands took %v, took effect after %v more", made.Sub(began), time.Since(made))
	if got := s.events()[0]; got.AccountID != "below" {
		t.Errorf("got %+v", got)
	}

	c.ingest.cli(t, "user", "delete", "agent", "--account", "beside")
	deleted := time.Now()
	code, reason := s.awaitEnd(t)
	t.Logf("a deleted user's socket is closed after %v", time.Since(deleted))

	if got := s.events(); code != 4003 || !strings.Contains(reason, got[len(got)-1].ID) {
		t.Errorf("closed with %d %q", code, reason)
	}

	eventually(t, "the deleted user's token to be refused", func() error {
		connected, err := subscription{paths: apiPaths, token: token}.connect(t.Context(), n)
		if err == nil {
			connected.close()
			return fmt.Errorf("it opens a socket")
		}
		return nil
	})

	n.mustRefuse(t, subscription{paths: wsPaths, token: token}, http.StatusUnauthorized)
	n.mustRefuse(t, subscription{paths: wsPaths, token: token, sse: true}, http.StatusUnauthorized)
	if a := n.tryLogin(t, apiPaths, w); a.status != http.StatusUnauthorized {
		t.Errorf("a deleted user's login: %s", a)
	}
}
