package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"trunkline/identity"
)

// A credential that is used without end gets 429 and Retry-After on every door that gives
// tokens, and others go on.
func TestTokensHaveARateOnEveryDoor(t *testing.T) {
	auth := identity.DefaultSettings()
	auth.UserTokensPerMinute = 60
	e := newEnvWith(t, auth)
	session, other := e.loginUser("alice"), e.loginUser("bob")
	key, _, err := e.identity.Directory.CreateAPIKey(t.Context(),
		identity.NewAPIKey{Account: "demo", Scopes: []identity.Scope{identity.ScopeSubscribe}})
	must(t, err)
	refresh := session.RefreshToken

	for _, door := range []struct {
		name string
		most int
		try  func() (status int, retryAfter string)
	}{
		{"exchange of a token", 60, func() (int, string) {
			w := e.do("POST", channelPrefix+"/login", bearer(session.AccessToken), `{}`)
			return w.Code, w.Header().Get("Retry-After")
		}},
		{"channel login", 60, func() (int, string) {
			w := e.do("POST", channelWSPrefix+"/login", nil, loginBody("admin"))
			return w.Code, w.Header().Get("Retry-After")
		}},
		{"exchange of a key", 600, func() (int, string) {
			w := e.do("POST", channelWSPrefix+"/login", header{"X-API-Key": key}, `{}`)
			return w.Code, w.Header().Get("Retry-After")
		}},
		{"refresh", 60, func() (int, string) {
			var next struct {
				RefreshToken string `json:"refresh_token"`
			}
			w := e.do("POST", "/ucp/v2/login/refresh", nil, fmt.Sprintf(`{"refresh_token":%q}`, refresh))
			if w.Code == http.StatusOK {
				must(t, json.Unmarshal(w.Body.Bytes(), &next))
				refresh = next.RefreshToken
			}

			return w.Code, w.Header().Get("Retry-After")
		}},
	} {
		for i := range door.most + 1 {
			status, retryAfter := door.try()
			if want := i < door.most; (status == http.StatusOK) != want ||
				!want && (status != http.StatusTooManyRequests || retryAfter == "") {
				t.Errorf("%s, time %d: %d, Retry-After %q", door.name, i+1, status, retryAfter)
				break
			}
		}
	}

	e.ask(http.StatusOK, "POST", channelPrefix+"/login", bearer(other.AccessToken), `{}`, nil)
}
