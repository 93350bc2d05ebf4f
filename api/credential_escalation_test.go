package api

import (
	"fmt"
	"testing"
	"time"

	"trunkline/identity"
)

// A stolen session sets no new password for itself, and does not rid itself of one-time passwords.
func TestAStolenSessionDoesNotBecomePermanent(t *testing.T) {
	e := newEnv(t)
	session := e.loginUser("admin")
	admin := bearer(session.AccessToken)
	own := accountsPath + "/demo/users/" + session.User.ID
	e.ask(409, "PUT", own, admin, `{"role":"admin","password":"a password of the thief"}`, nil)
	e.ask(409, "POST", own+"/otp", admin, "", nil)
	e.ask(409, "DELETE", own+"/otp", admin, "", nil)
	e.ask(200, "PUT", own, admin, `{"role":"admin","presence_id":"1099"}`, nil)
}

// A stolen key gives neither itself nor others more, or longer, than it has.
func TestAKeyGivesNoMoreThanItHas(t *testing.T) {
	e := newEnv(t)
	ctx := t.Context()
	expires := e.clock.Now().Add(time.Hour).Truncate(time.Second)

	newKey := func(expiresAt time.Time, scopes ...identity.Scope) (header, identity.APIKey) {
		key, made, err := e.identity.Directory.CreateAPIKey(ctx,
			identity.NewAPIKey{Account: "demo", Scopes: scopes, ExpiresAt: expiresAt})
		must(t, err)
		return header{"X-API-Key": key}, made
	}

	key, made := newKey(expires, identity.ScopeAdmin, identity.ScopeIngest)
	_, other := newKey(expires.Add(time.Hour), identity.ScopeAdmin, identity.ScopeRead)
	later, at := expires.Add(time.Minute).Unix(), expires.Unix()
	own, others := keysPath+"/"+made.ID, keysPath+"/"+other.ID
	users, err := e.identity.Directory.ListUsers(ctx, "demo")
	must(t, err)

	user := accountsPath + "/demo/users/" + users[1].ID
	for _, r := range []struct{ method, path, body string }{
		{"PUT", own, fmt.Sprintf(`{"scopes":["admin","ingest"],"expires_at":%d}`, later)},
		{"PUT", own, `{"scopes":["admin","ingest"],"expires_at":null}`},
		{"PUT", own, `{"scopes":["admin","ingest","recordings"]}`},
		{"PUT", others, fmt.Sprintf(`{"scopes":["admin","read"],"expires_at":%d}`, expires.Add(2*time.Hour).Unix())},
		{"PUT", others, `{"scopes":["admin","read","recordings"]}`},
		{"POST", keysPath, `{"scopes":["ingest"]}`},
		{"POST", keysPath, fmt.Sprintf(`{"scopes":["ingest"],"expires_at":%d}`, later)},
		{"POST", keysPath, fmt.Sprintf(`{"scopes":["recordings"],"expires_at":%d}`, at)},
		{"POST", accountsPath + "/demo/users", `{"username":"mallory"}`},
		{"POST", accountsPath + "/demo/users", `{"username":"mallory","role":"admin"}`},
		{"PUT", user, `{"role":"user","password":"a password of the thief"}`},
		{"PUT", user, `{"role":"admin"}`},
		{"POST", user + "/otp", ``},
		{"DELETE", user + "/otp", ``},
		{"POST", user + "/devices", `{}`},
	} {
		w := e.do(r.method, r.path, key, r.body)
		if w.Code != 403 && !(w.Code == 400 && r.body == `{"scopes":["admin","ingest"],"expires_at":null}`) {
			t.Errorf("%s %s %s: %d %s", r.method, r.path, r.body, w.Code, w.Body)
		}
	}

	e.ask(200, "PUT", own, key, fmt.Sprintf(`{"name":"renamed","scopes":["admin"],"expires_at":%d}`, at), nil)
	e.ask(403, "PUT", own, key, `{"scopes":["admin","ingest"]}`, nil)
	e.ask(200, "PUT", others, key, `{"name":"renamed","scopes":["admin","read"]}`, nil)

	admins, _ := newKey(time.Time{}, identity.ScopeAdmin)
	e.ask(201, "POST", accountsPath+"/demo/users", admins, `{"username":"clerk"}`, nil)
	e.ask(403, "POST", accountsPath+"/demo/users", admins, `{"username":"chief","role":"admin"}`, nil)
	all, _ := newKey(time.Time{}, identity.Scopes()...)
	e.ask(201, "POST", accountsPath+"/demo/users", all, `{"username":"chief","role":"admin"}`, nil)
}
