package e2e

import (
	"encoding/json"
	"net/http"
	"testing"
)

// tryPortalLogin logs in to the portal, which stores a session.
func (n *node) tryPortalLogin(t *testing.T) answer {
	t.Helper()
	return n.mustCall(t, http.MethodPost, "/ucp/v2/login", map[string]string{"Content-Type": typeJSON},
		`{"username":"alice","password":"`+password+`","domain":"demo.local"}`)
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

	a := c.ingestNode.mustCall(t, http.MethodPost, "/ucp/v2/login", map[string]string{"Content-Type": typeJSON},
		string(body))
	var s portalSession
	if err := json.Unmarshal(a.body, &s); err != nil || a.status != http.StatusOK || s.AccessToken == "" {
		t.Fatalf("portal login answers %s", a)
	}

	return s
}

func portalSessionOf(t *testing.T, a answer) (s portalSession) {
	t.Helper()
	if err := json.Unmarshal(a.body, &s); err != nil || s.AccessToken == "" {
		t.Fatalf("portal login: %s", a)
	}
	return s
}
