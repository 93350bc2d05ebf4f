package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// testCommandsTakeEffect changes accounts, keys and users by commands while the nodes run.
func (c *cluster) testCommandsTakeEffect(t *testing.T) {
	w := c.createAccountAndUser(t, "beside", "demo")
	n := c.lastChannelNode()
	token := n.login(t, apiPaths, w)
	s := n.subscribe(t, subscription{paths: apiPaths, token: token})

	// The promise is a second; the condition is generous, the log shows the time.
	began := time.Now()
	c.ingestNode.cli(t, "account", "create", "below", "--id", "below", "--domain", "below.test", "--parent", "beside")
	key := c.ingestNode.cli(t, "apikey", "create", "--account", "beside")
	made := time.Now()

	for i := 0; len(s.events()) == 0; i++ {
		a := c.ingestNode.post(t, key, "svc.cc", typeJSON, record("below", i))
		if a.status != http.StatusAccepted && a.status != http.StatusUnauthorized && a.status != http.StatusForbidden ||
			time.Since(made) > patience {
			t.Fatalf("with the new key, for the new account: %s", a)
		}
	}

	t.Logf("commands took %v, took effect after %v more", made.Sub(began), time.Since(made))
	if got := s.events()[0]; got.AccountID != "below" {
		t.Errorf("got %+v", got)
	}

	c.ingestNode.cli(t, "user", "delete", "agent", "--account", "beside")
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
