package e2e

import (
	"fmt"
	"testing"
	"time"
)

// testConnectionCounts counts the open connections of all nodes in the health and the statistics of each.
func (c *cluster) testConnectionCounts(t *testing.T) {
	w := c.createAccountAndUser(t, "counted", "demo")
	c.createAccountAndUser(t, "uncounted", "demo")
	first, second := c.channelNodes[0], c.lastChannelNode()
	c.awaitNoClients(t)
	token := first.login(t, apiPaths, w)
	began := time.Now().Unix()
	open := []*subscriber{
		first.subscribe(t, subscription{paths: apiPaths, token: token}),
		second.subscribe(t, subscription{paths: wsPaths, token: token}),
		second.subscribe(t, subscription{paths: wsPaths, token: token, sse: true}),
		first.subscribe(t,
			subscription{paths: apiPaths, token: first.login(t, apiPaths, user("alice").accounts("counted"))}),
	}

	for _, n := range c.channelNodes {
		for _, p := range []paths{apiPaths, wsPaths} {
			eventually(t, "all connections in health and stats", func() error {
				h, s := n.health(t, p), n.stats(t, p, token)
				if h.Status != "ok" || h.Total != len(open) || h.Timestamp < began || s.Total != 3 ||
					len(s.Clients) != 3 {
					return fmt.Errorf("%+v, %+v", h, s)
				}

				for _, client := range s.Clients {
					if client.AccountID != "counted" || client.ID == "" || client.ConnectedAt < began ||
						client.LastPing < client.ConnectedAt {
						return fmt.Errorf("%+v", client)
					}
				}

				return nil
			})
		}
	}

	// A portal token returns the same statistics; an ancestor's administrator gets those of all
	// its accounts.
	if s := second.stats(t, apiPaths, c.portalLogin(t, user("admin")).AccessToken); s.Total != len(open) {
		t.Errorf("an ancestor's administrator sees %+v", s)
	}

	for _, s := range open {
		s.close()
	}

	c.awaitNoClients(t)
}

// awaitNoClients waits until there are no connections.
func (c *cluster) awaitNoClients(t testing.TB) {
	t.Helper()
	for _, n := range c.channelNodes {
		n.awaitHealth(t, "ok", 0, patience)
	}
}
