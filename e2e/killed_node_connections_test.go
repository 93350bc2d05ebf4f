package e2e

import (
	"testing"
	"time"
)

// TestKilledNodesConnectionsDisappear checks the count of connections over two nodes, one of
// which is killed.
func TestKilledNodesConnectionsDisappear(t *testing.T) {
	t.Parallel()
	c := allRolesCluster(t)
	dies, stays := c.nodes[0], c.nodes[1]
	token := stays.login(t, apiPaths, user("alice"))

	for range 3 {
		dies.subscribe(t, subscription{paths: apiPaths, token: token})
	}

	stays.subscribe(t, subscription{paths: wsPaths, token: token})
	for _, n := range c.nodes {
		n.awaitHealth(t, "ok", 4, patience)
	}

	dies.kill(t)
	died := time.Now()
	stays.awaitHealth(t, "ok", 1, patience)

	if s := stays.stats(t, apiPaths, token); s.Total != 1 || len(s.Clients) != 1 {
		t.Errorf("stats %+v", s)
	}

	t.Logf("a killed node's connections are gone after %v", time.Since(died).Round(100*time.Millisecond))
	dies.start(t)
	dies.subscribe(t, subscription{paths: apiPaths, token: token})
	stays.awaitHealth(t, "ok", 2, patience)
}
