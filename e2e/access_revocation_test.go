package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestSigningKeyRotateNowEndsEverySession(t *testing.T) {
	t.Parallel()
	n := newNode(t, "rotating", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	portal := portalSessionOf(t, n.tryPortalLogin(t))
	s := n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user("bob"))})

	logout := func(token string) answer {
		return n.mustCall(t, http.MethodPost, "/ucp/v2/logout", map[string]string{"Authorization": "Bearer " + token},
			"")
	}

	id := strings.TrimSpace(n.cli(t, "signingkey", "rotate"))
	rotated := time.Now()
	eventually(t, "the new key", func() error {
		if a := n.mustCall(t, http.MethodGet, "/.well-known/jwks.json", nil, ""); !strings.Contains(string(a.body),
			id) {
			return fmt.Errorf("published are %s", a)
		}
		return nil
	})

	t.Logf("published %v after the command", time.Since(rotated))
	if a := logout(portal.AccessToken); a.status != http.StatusNoContent {
		t.Errorf("an earlier key's token: %s", a)
	}

	portal = portalSessionOf(t, n.tryPortalLogin(t))
	n.cli(t, "signingkey", "rotate", "--now")
	rotated = time.Now()

	if code, _ := s.awaitEnd(t); code != 4003 {
		t.Errorf("closed with %d", code)
	}

	t.Logf("closed %v after the command", time.Since(rotated))
	if a := logout(portal.AccessToken); a.status != http.StatusUnauthorized {
		t.Errorf("a token of a key that was replaced: %s", a)
	}

	n.login(t, apiPaths, user("bob"))
}

// A change of a supervisor's queues and of an agent's extension reaches open connections, and another role closes
// them. The promise is 5 s; the log shows the times.
func TestAChangeOfARoleReachesOpenConnections(t *testing.T) {
	t.Parallel()
	n := newNode(t, "roles", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	key := n.cli(t, "apikey", "create", "--account", "demo", "--scope", "ingest")

	admin := n.dialler(t, "admin").header
	newUser := func(name, fields string) (path string, s *subscriber) {
		t.Helper()
		a := n.mustCall(t, http.MethodPost, "/api/v2/accounts/demo/users", admin,
			fmt.Sprintf(`{"username":%q,"password":%q,%s}`, name, password, fields))
		var made struct{ ID string }
		if err := json.Unmarshal(a.body, &made); err != nil || a.status != http.StatusCreated {
			t.Fatalf("a new user: %s %v", a, err)
		}

		return "/api/v2/accounts/demo/users/" + made.ID,
			n.subscribe(t, subscription{paths: apiPaths, token: n.login(t, apiPaths, user(name))})
	}

	change := func(path, fields string) (at time.Time) {
		t.Helper()
		at = time.Now()
		if a := n.mustCall(t, http.MethodPut, path, admin, "{"+fields+"}"); a.status != http.StatusOK {
			t.Fatalf("a change: %s", a)
		}
		return at
	}

	round := 0
	// Of each pair of events, the first is of sales and its agent, the second of support and its agent.
	seesOnly := func(s *subscriber, which int, since time.Time) {
		t.Helper()
		eventually(t, "a subscriber to see its own", func() error {
			round += 2
			login := `{"Account-ID":"demo","Type":"AGENT_LOGIN","Agent-ID":"%d@demo.local","Queue-ID":%q,"n":%d}`
			n.postAccepted(t, key, "svc.cc", typeJSON, "["+fmt.Sprintf(login, 7001, "sales", round)+","+
				fmt.Sprintf(login, 7003, "support", round+1)+","+fmt.Sprintf(login, 7001, "sales", -round)+","+
				fmt.Sprintf(login, 7003, "support", -round)+"]", 4)

			got := map[int]bool{}
			s.await(t, "one of the last two", func(events []event) bool {
				for _, e := range events {
					got[number(t, e)] = true
				}
				return got[-round]
			})

			if !got[round+which] || got[round+1-which] {
				return fmt.Errorf("of the events %d and %d it sees %v", round, round+1, got)
			}

			return nil
		})

		t.Logf("after %v", time.Since(since))
	}

	path, s := newUser("sue", `"role":"supervisor","queue_ids":["sales"]`)
	seesOnly(s, 0, time.Now())
	seesOnly(s, 1, change(path, `"role":"supervisor","queue_ids":["support"]`))
	changed := change(path, `"role":"agent","agent_ids":["7001@demo.local"]`)

	if code, _ := s.awaitEnd(t); code != 4003 {
		t.Errorf("another role closes with %d", code)
	}

	t.Logf("closed after %v", time.Since(changed))

	path, s = newUser("abe", `"role":"agent","presence_id":"7001"`)
	seesOnly(s, 0, time.Now())
	seesOnly(s, 1, change(path, `"role":"agent","presence_id":"7003"`))
}

// A wallboard logs in with a key; deleting the key closes its socket.
func TestAKeysSocketEndsWithTheKey(t *testing.T) {
	t.Parallel()
	n := newNode(t, "wallboard", map[string]string{"TRUNKLINE_DEMO_PASSWORD": password})
	n.start(t)
	key := strings.TrimSpace(
		n.cli(t, "apikey", "create", "--account", "demo", "--scope", "subscribe", "--expires", "90d"))
	a := n.mustCall(t, http.MethodPost, apiPaths.login, map[string]string{"X-API-Key": key},
		`{"event_types":["AGENT_LOGIN"]}`)
	s := n.subscribe(t, subscription{paths: apiPaths, token: portalSessionOf(t, a).AccessToken})
	var keys []struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(n.cli(t, "apikey", "list", "--json")), &keys); err != nil || len(keys) != 1 {
		t.Fatalf("keys %v: %v", keys, err)
	}

	n.cli(t, "apikey", "delete", keys[0].ID)
	deleted := time.Now()
	if code, _ := s.awaitEnd(t); code != 4003 {
		t.Errorf("after the deletion of its key the socket is closed with %d", code)
	}

	t.Logf("closed %v after the command", time.Since(deleted))
	if a := n.mustCall(t, http.MethodPost, apiPaths.login, map[string]string{"X-API-Key": key},
		`{}`); a.status != http.StatusUnauthorized {
		t.Errorf("a login with the deleted key: %s", a)
	}
}
