package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

func TestLogin(t *testing.T) {
	e := newEnv(t)
	alice := e.loginUser("alice")
	if u := alice.User; u.ID == "" || u.AccountID != "demo" || u.Username != "alice" || u.PresenceID != "1001" ||
		u.Role != "user" {
		t.Errorf("user %+v", u)
	}
	if alice.ExpiresIn != 3600 || alice.AccessToken == "" || alice.RefreshToken == "" {
		t.Errorf("session %+v", alice)
	}
	if admin := e.loginUser("admin"); admin.User.Role != "admin" || admin.User.PresenceID != "" {
		t.Errorf("user %+v", admin.User)
	}
}

func TestLoginAnswersNothingAboutWhy(t *testing.T) {
	e := newEnv(t)
	bodies := make(map[string]bool)
	for _, body := range []string{
		`{"username":"alice","password":"wrong","domain":"demo.local"}`,
		`{"username":"nobody","password":"wrong","domain":"demo.local"}`,
		`{"username":"alice","password":"` + password + `","domain":"stranger.local"}`,
		`{"username":"' OR 1=1 --","password":"'; DROP TABLE identity_users; --","domain":"demo.local"}`,
		`{"username":"alice\u0000","password":"\r\nX-Injected: 1","domain":"demo.local"}`,
	} {
		w := e.ask(401, "POST", "/ucp/v2/login", nil, body, nil)
		bodies[w.Body.String()] = true
		if w.Header().Get("WWW-Authenticate") != "Bearer" || w.Header().Get("X-Injected") != "" {
			t.Errorf("headers %v", w.Header())
		}
	}

	if len(bodies) != 1 {
		t.Errorf("answers differ: %v", bodies)
	}

	e.loginUser("alice") // everything is still there
}

func TestLoginLimit(t *testing.T) {
	e := newEnv(t)
	wrong := strings.Replace(loginBody("bob"), password, "wrong", 1)
	for range 10 {
		e.ask(401, "POST", "/ucp/v2/login", nil, wrong, nil)
	}

	w := e.ask(429, "POST", "/ucp/v2/login", nil, wrong, nil)
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}

	e.ask(429, "POST", channelWSPrefix+"/login", nil, wrong, nil)
	e.loginUser("alice")
}

func TestRefreshAndLogout(t *testing.T) {
	e := newEnv(t)
	first := e.loginUser("alice")
	refresh := func(token string) string { return `{"refresh_token":"` + token + `"}` }
	var second sessionView
	e.ask(200, "POST", "/ucp/v2/login/refresh", nil, refresh(first.RefreshToken), &second)

	if second.RefreshToken == first.RefreshToken || second.User != first.User {
		t.Errorf("refreshed to %+v", second)
	}

	e.ask(401, "POST", "/ucp/v2/login/refresh", nil, refresh(first.RefreshToken), nil)
	e.ask(401, "POST", "/ucp/v2/login/refresh", nil, refresh(second.RefreshToken), nil) // its family is gone

	third := e.loginUser("alice")
	e.ask(204, "POST", "/ucp/v2/logout", bearer(third.AccessToken), "", nil)
	e.ask(401, "POST", "/ucp/v2/logout", bearer(third.AccessToken), "", nil)
	e.ask(401, "POST", "/ucp/v2/login/refresh", nil, refresh(third.RefreshToken), nil)

	e.ask(403, "POST", "/ucp/v2/logout", bearer(e.eventsToken("alice")), "", nil)
	fourth := e.loginUser("alice")
	e.clock.Add(2 * time.Hour)
	e.ask(401, "POST", "/ucp/v2/logout", bearer(fourth.AccessToken), "", nil)
}

func TestKeySet(t *testing.T) {
	e := newEnv(t)
	w := e.ask(200, "GET", "/.well-known/jwks.json", nil, "", nil)
	if !strings.HasPrefix(w.Header().Get("Cache-Control"), "public") {
		t.Error("not cacheable")
	}
	w = e.ask(200, "POST", "/ucp/v2/login", nil, loginBody("bob"), nil)
	if w.Header().Get("Cache-Control") != "no-store" {
		t.Error("tokens may be cached")
	}
}

func TestChangePassword(t *testing.T) {
	e := newEnv(t)
	mine, other := e.loginUser("alice"), e.loginUser("alice")
	change := func(status int, current, next string) *failure {
		t.Helper()
		body, err := json.Marshal(map[string]string{"current": current, "new": next})
		must(t, err)
		f := &failure{}
		w := e.ask(status, "PUT", "/ucp/v2/password", bearer(mine.AccessToken), string(body), nil)
		if w.Body.Len() > 0 {
			must(t, json.Unmarshal(w.Body.Bytes(), f))
		}

		return f
	}

	for _, c := range []struct{ current, next, field, code string }{
		{"a wrong password", "another long password, river", "current", "wrong"},
		{password, "short", "new", "too_short"},
		{password, "Sunshine", "new", "too_common"},
		{password, strings.Repeat("a", 1025), "new", "too_long"},
	} {
		if f := change(400, c.current, c.next); len(f.Errors) != 1 || f.Errors[0].Field != c.field ||
			f.Errors[0].Code != c.code {
			t.Errorf("%.20q: %+v", c.next, f)
		}
	}

	change(204, password, "another long password, river")
	e.ask(401, "POST", "/ucp/v2/logout", bearer(other.AccessToken), "", nil)
	e.ask(401, "POST", "/ucp/v2/login", nil, loginBody("alice"), nil)
	e.ask(401, "PUT", "/ucp/v2/password", nil, `{"current":"a","new":"b"}`, nil)
	e.ask(401, "PUT", "/ucp/v2/password", header{"X-API-Key": e.key}, `{"current":"a","new":"b"}`, nil)
	e.ask(403, "PUT", "/ucp/v2/password", bearer(e.eventsToken("bob")), `{"current":"a","new":"b"}`, nil)
	e.ask(204, "POST", "/ucp/v2/logout", bearer(mine.AccessToken), "", nil)
}

func TestOneTimePasswords(t *testing.T) {
	e := newEnv(t)
	admin := e.loginUser("admin")
	h := bearer(admin.AccessToken)
	e.ask(400, "GET", "/api/v2/config/login", h, "", nil)
	h["X-Account-ID"] = "demo"
	var rules loginRules
	e.ask(200, "GET", "/api/v2/config/login", h, "", &rules)

	if rules.AdminOTP != "optional" {
		t.Errorf("rules %+v", rules)
	}

	e.ask(400, "PUT", "/api/v2/config/login", h, `{"admin_otp":"never"}`, nil)
	e.ask(200, "PUT", "/api/v2/config/login", h, `{"admin_otp":"required"}`, &rules)
	user := bearer(e.loginUser("alice").AccessToken)
	user["X-Account-ID"] = "demo"
	e.ask(403, "PUT", "/api/v2/config/login", user, `{"admin_otp":"optional"}`, nil)

	body := loginBody("admin")
	bodyWith := func(otp string) string { return strings.Replace(body, "}", `,"otp":"`+otp+`"}`, 1) }
	e.ask(403, "POST", "/ucp/v2/login", nil, body, nil)
	e.ask(409, "PUT", "/ucp/v2/otp", nil, bodyWith("123456"), nil)
	var enrolment struct{ Secret, URI string }
	e.ask(200, "POST", "/ucp/v2/otp", nil, body, &enrolment)
	code, err := totp.GenerateCode(enrolment.Secret, e.clock.Now())
	must(t, err)
	var confirmed struct {
		Codes []string `json:"recovery_codes"`
	}
	e.ask(200, "PUT", "/ucp/v2/otp", nil, bodyWith(code), &confirmed)
	w := e.ask(401, "POST", "/ucp/v2/login", nil, body, nil)
	if !strings.Contains(w.Body.String(), `"code":"required"`) {
		t.Errorf("got %s", w.Body)
	}

	e.ask(401, "POST", channelPrefix+"/login", nil, body, nil)
	e.ask(401, "POST", "/ucp/v2/login", nil, bodyWith(code), nil)
	e.ask(200, "POST", "/ucp/v2/login", nil, bodyWith(confirmed.Codes[0]), nil)
	e.ask(200, "POST", channelPrefix+"/login", nil, bodyWith(confirmed.Codes[1]), nil)
}
