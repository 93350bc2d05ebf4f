package api

import (
	"strings"
	"testing"
	"time"

	"trunkline/identity"
	"trunkline/identity/oidc"
	"trunkline/internal/testservice/oidcprovider"
)

// newProviderEnv returns an env whose users can log in at a provider.
func newProviderEnv(t *testing.T) (*env, *oidcprovider.Provider) {
	t.Helper()
	p := oidcprovider.Start(t)
	auth := identity.DefaultSettings()
	auth.OIDC.Issuer, auth.OIDC.ClientID = p.URL, oidcprovider.ClientID
	auth.OIDC.RedirectURL = "https://trunkline.test" + oidc.CallbackPath
	e := newEnvWith(t, auth)
	p.Now = e.clock.Now
	return e, p
}

func TestBothLoginsAcceptAProvidersToken(t *testing.T) {
	e, p := newProviderEnv(t)
	token := p.Token(map[string]any{"exp": e.clock.Now().Add(10 * time.Minute).Unix()})
	var s session
	e.want(200, "POST", "/ucp/v2/login", bearer(token), `{}`, &s)
	if s.User.Username != "carol" || s.User.AccountID != "demo" || s.ExpiresIn > 600 || s.RefreshToken == "" {
		t.Errorf("%+v", s)
	}
	e.want(200, "GET", "/api/v2/reports/cdrs?startDate=1&endDate=2", bearer(s.AccessToken), "", nil)
	for _, path := range []string{channelAPI, channelSocket} {
		var channel session
		e.want(200, "POST", path+"/login", bearer(token), `{"names":["call.*"]}`, &channel)
		if channel.ExpiresIn > 600 || channel.ExpiresIn < 1 {
			t.Errorf("the channel token lives %d s", channel.ExpiresIn)
		}
		e.want(200, "GET", path+"/stats", bearer(channel.AccessToken), "", nil)
		e.want(200, "POST", path+"/login", bearer(s.AccessToken), `{}`, nil) // a portal token is exchanged as ever
		e.want(400, "POST", path+"/login", bearer(token), `{"names":["nothing"]}`, nil)
	}
	e.want(200, "POST", "/ucp/v2/login", bearer(token), loginBody("alice"), &s)
	if s.User.Username != "alice" {
		t.Errorf("a body with a password logs %s in", s.User.Username)
	}
	e.want(400, "POST", "/ucp/v2/login", bearer(token), `{"otp":"1"}`, nil)
	e.want(400, "POST", "/ucp/v2/login", nil, `{}`, nil)
	if strings.Contains(e.log.String(), token) {
		t.Error("the token is in the log")
	}
}

func TestRefusedProvidersTokens(t *testing.T) {
	e, p := newProviderEnv(t)
	for _, login := range []string{"/ucp/v2/login", channelAPI + "/login"} {
		var refusal failure
		w := e.want(401, "POST", login, bearer(p.Token(map[string]any{"aud": "another"})), `{}`, &refusal)
		if !strings.Contains(refusal.Message, "auth.oidc.audience") || w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%+v", refusal)
		}
		e.want(403, "POST", login, bearer(p.Token(map[string]any{"account": nil})), `{}`, &refusal)
		if refusal.Errors[0].Field != "account" || refusal.Errors[0].Code != "missing_claim" {
			t.Errorf("%+v", refusal)
		}
		e.want(401, "POST", login, bearer(oidcprovider.Start(t).Token(nil)), `{}`, nil)
		e.want(401, "POST", login, bearer("word"), `{}`, nil)
	}
	e.want(401, "GET", "/api/v2/audit?startDate=1&endDate=2", bearer(p.Token(nil)), "", nil) // a login only
}

func TestAProviderThatIsAwayIs503(t *testing.T) {
	e, p := newProviderEnv(t)
	p.SetAway(true)
	for _, login := range []string{"/ucp/v2/login", channelAPI + "/login"} {
		var refusal failure
		w := e.want(503, "POST", login, bearer(p.Token(nil)), `{}`, &refusal)
		if w.Header().Get("Retry-After") == "" || !strings.Contains(refusal.Message, "auth.oidc.issuer") {
			t.Errorf("%+v", refusal)
		}
	}
	e.login("alice") // passwords need no provider
}

func TestAUserOfAProviderIsCreatedBySubject(t *testing.T) {
	e, p := newProviderEnv(t)
	admin := bearer(e.login("admin").AccessToken)
	var made userView
	e.want(201, "POST", accountsPath+"/sub/users", admin, `{"username":"carol","oidc_subject":"u-1"}`, &made)
	if made.OIDCSubject != "u-1" || made.Password != "" {
		t.Errorf("%+v", made)
	}
	e.want(409, "POST", accountsPath+"/demo/users", admin, `{"username":"other","oidc_subject":"u-1"}`, nil)
	e.want(400, "POST", accountsPath+"/demo/users", admin, `{"username":"other","oidc_subject":"u-2","password":"a long password of them"}`, nil)
	one := accountsPath + "/sub/users/" + made.ID
	e.want(200, "PUT", one, admin, `{"role":"user","oidc_subject":"u-1"}`, nil)
	e.want(400, "PUT", one, admin, `{"role":"user","oidc_subject":"u-2"}`, nil)
	e.want(409, "PUT", one, admin, `{"role":"user","password":"a long password of them"}`, nil)
	var s session
	e.want(200, "POST", "/ucp/v2/login", bearer(p.Token(map[string]any{"account": "sub"})), `{}`, &s)
	if s.User.ID != made.ID {
		t.Errorf("logged in as %+v", s.User)
	}
	e.want(204, "DELETE", one, admin, "", nil)
	e.want(403, "POST", "/ucp/v2/login", bearer(p.Token(map[string]any{"account": "sub"})), `{}`, nil)
	e.want(401, "GET", accountsPath, bearer(s.AccessToken), "", nil)
}
