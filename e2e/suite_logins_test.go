package e2e

import (
	"net/http"
	"testing"
)

func (c *cluster) testLogins(t *testing.T) {
	for _, n := range c.nodes {
		var keys struct {
			Keys []map[string]string `json:"keys"`
		}
		n.readJSON(t, "/.well-known/jwks.json", nil, &keys)

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

	n := c.lastChannelNode()
	n.mustRefuse(t, subscription{paths: wsPaths, token: portal.AccessToken}, http.StatusForbidden)
	n.mustRefuse(t, subscription{paths: apiPaths, token: portal.AccessToken, sse: true}, http.StatusForbidden)
	wrong := user("alice")
	wrong.Password = "wrong"

	if a := n.tryLogin(t, wsPaths, wrong); a.status != http.StatusUnauthorized {
		t.Errorf("a wrong password: %s", a)
	}

	// A token of one node and path set is valid at the others.
	token := c.channelNodes[0].login(t, apiPaths, user("bob"))
	c.lastChannelNode().subscribe(t, subscription{paths: wsPaths, token: token}).close()
}
