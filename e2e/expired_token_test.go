package e2e

import (
	"net/http"
	"testing"
	"time"
)

// TestExpiredToken runs a node whose tokens live for two seconds.
func TestExpiredToken(t *testing.T) {
	t.Parallel()
	n := newNode(t, "short-lived", map[string]string{
		"TRUNKLINE_DEMO_PASSWORD": password, "TRUNKLINE_AUTH_EVENTS_TTL": "2s", "TRUNKLINE_AUTH_ACCESS_TTL": "2s",
	})
	n.start(t)
	token := n.login(t, apiPaths, user("alice"))
	opened := time.Now()
	s := n.subscribe(t, subscription{paths: apiPaths, token: token})
	if code, _ := s.awaitEnd(t); code != 4001 {
		t.Errorf("closed with %d", code)
	}

	t.Logf("an open socket outlived its login by %v", time.Since(opened))
	n.mustRefuse(t, subscription{paths: wsPaths, token: token}, http.StatusUnauthorized)
}
