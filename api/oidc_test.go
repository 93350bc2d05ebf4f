package api

import (
	"net/http"
	"net/http/httptest"
	"net/url"
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
	var s sessionView
	e.ask(200, "POST", "/ucp/v2/login", bearer(token), `{}`, &s)

	if s.User.Username != "carol" || s.User.AccountID != "demo" || s.ExpiresIn > 600 || s.RefreshToken == "" {
		t.Errorf("%+v", s)
	}

	e.ask(200, "GET", "/api/v2/reports/cdrs?startDate=1&endDate=2", bearer(s.AccessToken), "", nil)
	for _, path := range []string{channelPrefix, channelWSPrefix} {
		var channel sessionView
		e.ask(200, "POST", path+"/login", bearer(token), `{"names":["call.*"]}`, &channel)
		if channel.ExpiresIn > 600 || channel.ExpiresIn < 1 {
			t.Errorf("the channel token lives %d s", channel.ExpiresIn)
		}

		e.ask(200, "GET", path+"/stats", bearer(channel.AccessToken), "", nil)
		e.ask(200, "POST", path+"/login", bearer(s.AccessToken), `{}`, nil) // a portal token is exchanged as ever
		e.ask(400, "POST", path+"/login", bearer(token), `{"names":["nothing"]}`, nil)
	}

	e.ask(200, "POST", "/ucp/v2/login", bearer(token), loginBody("alice"), &s)
	if s.User.Username != "alice" {
		t.Errorf("a body with a password logs %s in", s.User.Username)
	}

	e.ask(400, "POST", "/ucp/v2/login", bearer(token), `{"otp":"1"}`, nil)
	e.ask(400, "POST", "/ucp/v2/login", nil, `{}`, nil)
	if strings.Contains(e.log.String(), token) {
		t.Error("the token is in the log")
	}
}

func TestRefusedProvidersTokens(t *testing.T) {
	e, p := newProviderEnv(t)
	for _, login := range []string{"/ucp/v2/login", channelPrefix + "/login"} {
		var refusal failure
		w := e.ask(401, "POST", login, bearer(p.Token(map[string]any{"aud": "another"})), `{}`, &refusal)
		if !strings.Contains(refusal.Message, "auth.oidc.audience") || w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%+v", refusal)
		}

		e.ask(403, "POST", login, bearer(p.Token(map[string]any{"account": nil})), `{}`, &refusal)
		if refusal.Errors[0].Field != "account" || refusal.Errors[0].Code != "missing_claim" {
			t.Errorf("%+v", refusal)
		}

		e.ask(401, "POST", login, bearer(oidcprovider.Start(t).Token(nil)), `{}`, nil)
		e.ask(401, "POST", login, bearer("word"), `{}`, nil)
	}

	e.ask(401, "GET", "/api/v2/audit?startDate=1&endDate=2", bearer(p.Token(nil)), "", nil) // a login only
}

func TestAProviderThatIsAwayIs503(t *testing.T) {
	e, p := newProviderEnv(t)
	p.SetUnavailable(true)
	for _, login := range []string{"/ucp/v2/login", channelPrefix + "/login"} {
		var refusal failure
		w := e.ask(503, "POST", login, bearer(p.Token(nil)), `{}`, &refusal)
		if w.Header().Get("Retry-After") == "" || !strings.Contains(refusal.Message, "auth.oidc.issuer") {
			t.Errorf("%+v", refusal)
		}
	}

	e.loginUser("alice") // passwords need no provider
}

func TestAUserOfAProviderIsCreatedBySubject(t *testing.T) {
	e, p := newProviderEnv(t)
	admin := bearer(e.loginUser("admin").AccessToken)
	var made userView
	e.ask(201, "POST", accountsPath+"/sub/users", admin, `{"username":"carol","oidc_subject":"u-1"}`, &made)

	if made.OIDCSubject != "u-1" || made.Password != "" {
		t.Errorf("%+v", made)
	}

	e.ask(409, "POST", accountsPath+"/sub/users", admin, `{"username":"other","oidc_subject":"u-1"}`, nil)
	e.ask(400, "POST", accountsPath+"/demo/users", admin,
		`{"username":"other","oidc_subject":"u-2","password":"a long password of them"}`, nil)
	one := accountsPath + "/sub/users/" + made.ID
	e.ask(200, "PUT", one, admin, `{"role":"user","oidc_subject":"u-1"}`, nil)
	e.ask(400, "PUT", one, admin, `{"role":"user","oidc_subject":"u-2"}`, nil)
	e.ask(409, "PUT", one, admin, `{"role":"user","password":"a long password of them"}`, nil)
	var s sessionView
	e.ask(200, "POST", "/ucp/v2/login", bearer(p.Token(map[string]any{"account": "sub"})), `{}`, &s)

	if s.User.ID != made.ID {
		t.Errorf("logged in as %+v", s.User)
	}

	e.ask(204, "DELETE", one, admin, "", nil)
	e.ask(403, "POST", "/ucp/v2/login", bearer(p.Token(map[string]any{"account": "sub"})), `{}`, nil)
	e.ask(401, "GET", accountsPath, bearer(s.AccessToken), "", nil)
}

// browser keeps cookies over requests, as a browser does.
type browser struct {
	*env
	cookies map[string]string
}

func (b *browser) askWithCookies(status int, method, target string, into any) *httptest.ResponseRecorder {
	b.t.Helper()
	h := header{}
	var sent []string

	for name, value := range b.cookies {
		sent = append(sent, name+"="+value)
	}

	if len(sent) > 0 {
		h["Cookie"] = strings.Join(sent, "; ")
	}

	w := b.ask(status, method, target, h, "", into)
	for _, cookie := range w.Result().Cookies() {
		if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" ||
			cookie.Domain != "" {
			b.t.Errorf("cookie %s", cookie)
		}

		b.cookies[cookie.Name] = cookie.Value
		if cookie.MaxAge < 0 {
			delete(b.cookies, cookie.Name)
		} else if cookie.MaxAge == 0 || cookie.MaxAge > 600 {
			b.t.Errorf("cookie %s lives %d s", cookie.Name, cookie.MaxAge)
		}
	}

	return w
}

// beginLogin begins a login and returns the address to which the browser is sent.
func (b *browser) beginLogin() string {
	b.t.Helper()
	return b.askWithCookies(303, "GET", "/auth/oidc/start", nil).Header().Get("Location")
}

// comeBack comes back from the provider and takes the result.
func (b *browser) comeBack(to *url.URL, status int, into any) {
	b.t.Helper()
	w := b.askWithCookies(303, "GET", to.RequestURI(), nil)
	if w.Header().Get("Location") != boardLoginPath || w.Body.Len() > 0 {
		b.t.Errorf("on to %s %s", w.Header().Get("Location"), w.Body)
	}
	b.askWithCookies(status, "POST", "/auth/oidc/session", into)
	b.askWithCookies(401, "POST", "/auth/oidc/session", nil) // once
}

func TestABrowserLogsInAtTheProvider(t *testing.T) {
	e, p := newProviderEnv(t)
	b := &browser{e, map[string]string{}}
	var offered struct{ Enabled, Login bool }
	e.ask(200, "GET", "/auth/oidc", nil, "", &offered)

	if !offered.Enabled || !offered.Login {
		t.Error("no login is offered")
	}

	callback := p.Authorize(t, b.beginLogin(), nil)
	var s sessionView
	b.comeBack(callback, 200, &s)

	if s.User.Username != "carol" || s.ExpiresIn < 3500 || len(b.cookies) != 0 {
		t.Errorf("%+v, cookies %v", s, b.cookies)
	}

	e.ask(200, "POST", channelWSPrefix+"/login", bearer(s.AccessToken), `{}`, nil)
	e.ask(200, "POST", "/ucp/v2/login/refresh", nil, `{"refresh_token":"`+s.RefreshToken+`"}`, nil)
	code := callback.Query().Get("code")
	if log := e.log.String(); strings.Contains(log, code) || strings.Contains(log, s.RefreshToken) {
		t.Error("a code or token is in the log")
	}

	var refusal failure
	b.comeBack(callback, 401, &refusal) // the address again
	if !strings.Contains(refusal.Message, "not begun in this browser") {
		t.Error(refusal.Message)
	}
}

func TestABrowsersLoginThatIsRefused(t *testing.T) {
	e, p := newProviderEnv(t)
	b := &browser{e, map[string]string{}}
	var refusal failure

	for _, c := range []struct {
		what    string
		status  int
		message string
		back    func(address string) *url.URL
	}{
		{"another state", 401, "not begun in this browser", func(address string) *url.URL {
			callback := p.Authorize(t, address, nil)
			return &url.URL{Path: callback.Path, RawQuery: "state=x&code=" + callback.Query().Get("code")}
		}},
		{"no state", 401, "not begun in this browser", func(address string) *url.URL {
			return &url.URL{Path: oidc.CallbackPath, RawQuery: "code=x"}
		}},
		{"the user declines", 401, "access_denied", func(address string) *url.URL {
			return &url.URL{Path: oidc.CallbackPath,
				RawQuery: "error=access_denied&state=" + p.Authorize(t, address, nil).Query().Get("state")}
		}},
		{"markup for an error", 401, "no code", func(address string) *url.URL {
			return &url.URL{Path: oidc.CallbackPath,
				RawQuery: "error=%3Cb%3E&state=" + p.Authorize(t, address, nil).Query().Get("state")}
		}},
		{"another nonce", 401, "another login", func(address string) *url.URL {
			return p.Authorize(t, address, map[string]any{"nonce": "x"})
		}},
		{"no account", 403, `claim "account"`, func(address string) *url.URL {
			return p.Authorize(t, address, map[string]any{"account": nil})
		}},
		{"the provider goes away", 503, "auth.oidc.issuer", func(address string) *url.URL {
			callback := p.Authorize(t, address, nil)
			p.SetUnavailable(true)
			return callback
		}},
	} {
		address := b.beginLogin()
		b.comeBack(c.back(address), c.status, &refusal)
		if !strings.Contains(refusal.Message, c.message) {
			t.Errorf("%s: %q, want %q", c.what, refusal.Message, c.message)
		}
	}

	other := &browser{e, map[string]string{}}
	p.SetUnavailable(false)
	other.comeBack(p.Authorize(t, b.beginLogin(), nil), 401, &refusal) // a link with the code of somebody else's login
}

func TestWithoutAProviderBrowsersUsePasswords(t *testing.T) {
	e := newEnv(t)
	var offered struct{ Enabled, Login bool }
	e.ask(200, "GET", "/auth/oidc", nil, "", &offered)

	if offered.Enabled || offered.Login {
		t.Error("a login is offered")
	}

	e.ask(404, "GET", "/auth/oidc/start", nil, "", nil)
	b := &browser{e, map[string]string{}}
	b.comeBack(&url.URL{Path: oidc.CallbackPath, RawQuery: "code=x&state=y"}, 401, nil)
	p := oidcprovider.Start(t)
	p.SetUnavailable(true)
	auth := identity.DefaultSettings()
	auth.OIDC.Issuer = p.URL
	auth.OIDC.ClientID = oidcprovider.ClientID
	auth.OIDC.RedirectURL = "https://trunkline.test" + oidc.CallbackPath
	b = &browser{newEnvWith(t, auth), map[string]string{}}
	if address := b.beginLogin(); address != boardLoginPath {
		t.Errorf("without the provider the browser goes to %s", address)
	}

	b.askWithCookies(503, "POST", "/auth/oidc/session", nil)
}
