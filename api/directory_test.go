package api

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"trunkline/audit/audittest"
	"trunkline/identity"
	"trunkline/internal/report"
)

// adminKeyHeader is the header of a key of an account with the scope admin.
func (e *env) adminKeyHeader(account string) header {
	e.t.Helper()
	key, _, err := e.identity.Directory.CreateAPIKey(e.t.Context(),
		identity.NewAPIKey{Account: account, Scopes: []identity.Scope{identity.ScopeAdmin}})
	must(e.t, err)
	return header{"X-API-Key": key}
}

// etag returns the entity tag of the object at the path, which a conditional GET does not
// get again.
func (e *env) etag(path string, h header) string {
	e.t.Helper()
	tag := e.ask(200, "GET", path, h, "", nil).Header().Get("ETag")
	e.ask(200, "GET", path, withHeader(h, "If-None-Match", `"another"`), "", nil)
	w := e.ask(304, "GET", path, withHeader(h, "If-None-Match", `"another", W/`+tag), "", nil)
	if w.Body.Len() != 0 || w.Header().Get("ETag") != tag || w.Header().Get("Content-Type") != "" {
		e.t.Errorf("304 with %v %s", w.Header(), w.Body)
	}
	return tag
}

func TestAccountsOverHTTP(t *testing.T) {
	e := newEnv(t)
	admin := bearer(e.loginUser("admin").AccessToken)
	var page report.Page[accountView]
	e.ask(200, "GET", accountsPath, admin, "", &page)

	if len(page.Data) != 2 || page.Data[0].ID != "demo" || page.Data[0].ParentID != "" ||
		page.Data[1].ParentID != "demo" {
		t.Errorf("accounts %+v", page)
	}

	var made accountView
	w := e.ask(201, "POST", accountsPath, admin,
		`{"name":"Branch","domain":"Branch.Demo.Local","time_zone":"Europe/Berlin"}`, &made)
	if made.TimeZone != "Europe/Berlin" || made.ParentID != "demo" || made.Domain != "branch.demo.local" ||
		w.Header().Get("Location") != accountsPath+"/"+made.ID {
		t.Errorf("%+v %v", made, w.Header())
	}

	path := accountsPath + "/" + made.ID
	tag := e.etag(path, admin)
	if tag != w.Header().Get("ETag") {
		t.Errorf("ETag %s, then %s", w.Header().Get("ETag"), tag)
	}

	e.ask(200, "PUT", path, withHeader(admin, "If-Match", tag),
		`{"id":"`+made.ID+`","name":"Office","domain":"branch.demo.local","parent_id":"sub"}`, &made)
	if made.Name != "Office" || made.ParentID != "sub" {
		t.Errorf("%+v", made)
	}

	e.ask(412, "PUT", path, withHeader(admin, "If-Match", tag), `{"name":"Branch","domain":"branch.demo.local"}`, nil)
	e.ask(200, "PUT", path, admin, `{"name":"Branch","domain":"branch.demo.local"}`, &made)
	if made.ParentID != "sub" || made.TimeZone != "Europe/Berlin" {
		t.Errorf("absent fields change the account: %+v", made)
	}

	e.ask(200, "PUT", path, admin, `{"name":"Branch","domain":"branch.demo.local","time_zone":"Asia/Tokyo"}`, &made)
	if made.TimeZone != "Asia/Tokyo" {
		t.Errorf("%+v", made)
	}

	for body, status := range map[string]int{
		`{"name":"X","domain":"x.demo.local","parent_id":"stranger"}`: 400,
		`{"name":"X","domain":"x.demo.local","parent_id":"nowhere"}`:  400,
		`{"name":"X","domain":"x.demo.local","parent_id":""}`:         400,
		`{"name":"X"}`:                                         400,
		`{"name":"X","domain":"stranger.local"}`:               400,
		`{"name":"stranger","domain":"x.demo.local"}`:          409,
		`{"name":"X","domain":"x.demo.local","id":"stranger"}`: 400,
		`{"name":"X","domain":"x.example"}`:                    400,
		`{"name":"X","domain":"127.0.0.1"}`:                    400,
		`{"name":"X","domain":"x.demo.local","root":true}`:     400,
		`{"name":"X","domain":"x.demo.local","time_zone":"X"}`: 400,
	} {
		if w := e.ask(status, "POST", accountsPath, admin, body, nil); status == 409 &&
			strings.Contains(w.Body.String(), "stranger") {
			t.Errorf("a conflict names another's account: %s", w.Body)
		}
	}

	e.ask(400, "PUT", path, admin, `{"id":"other","name":"X","domain":"x.demo.local"}`, nil)
	w = e.ask(400, "PUT", accountsPath+"/sub", admin,
		`{"name":"sub","domain":"sub.demo.local","parent_id":"`+made.ID+`"}`, nil)
	if !strings.Contains(w.Body.String(), `"field":"parent_id"`) {
		t.Errorf("an account below itself: %s", w.Body)
	}

	e.ask(409, "PUT", accountsPath+"/demo", admin, `{"name":"demo","domain":"demo.local","parent_id":"sub"}`, nil)
	e.ask(200, "PUT", accountsPath+"/demo", admin, `{"name":"Demo","domain":"demo.local"}`, nil)
	e.ask(409, "DELETE", accountsPath+"/demo", admin, "", nil)
	e.ask(409, "DELETE", accountsPath+"/sub", admin, "", nil) // it has an account below it
	e.ask(400, "DELETE", path+"?purge=later", admin, "", nil)
	e.ask(412, "DELETE", path+"?purge=now", withHeader(admin, "If-Match", tag), "", nil)
	e.ask(204, "DELETE", path+"?purge=now", withHeader(admin, "If-Match", e.etag(path, admin)), "", nil)
	e.ask(404, "DELETE", path, admin, "", nil)
	e.ask(204, "DELETE", accountsPath+"/sub", admin, "", nil)

	for account, want := range map[string]string{"demo": "account.create user:", "sub": "account.update user:"} {
		if got := audittest.Entries(t, e.audit, account, want); !slices.ContainsFunc(got, func(line string) bool {
			return strings.HasSuffix(line, "account:"+made.ID+" ok")
		}) {
			t.Errorf("the audit log of %s has %q", account, got)
		}
	}
}

func TestUsersAndPhonesOverHTTP(t *testing.T) {
	e := newEnv(t)
	session := e.loginUser("admin")
	admin := bearer(session.AccessToken)
	const users = accountsPath + "/demo/users"
	var made userView
	e.ask(201, "POST", users, admin, `{"username":"Anna","presence_id":"2001"}`, &made)

	if made.Role != identity.RoleUser || len(made.Password) < 20 {
		t.Errorf("%+v", made)
	}

	login := func(status int, secret string) {
		t.Helper()
		e.ask(status, "POST", "/ucp/v2/login", nil,
			`{"username":"anna","password":"`+secret+`","domain":"demo.local"}`, nil)
	}

	login(200, made.Password)
	path := users + "/" + made.ID
	w := e.ask(200, "GET", path, admin, "", nil)
	if strings.Contains(w.Body.String(), "password") {
		t.Errorf("a user shows a password: %s", w.Body)
	}

	var page report.Page[userView]
	var names []string
	for next := "?page_size=2"; next != ""; {
		page = report.Page[userView]{}
		e.ask(200, "GET", users+next, admin, "", &page)
		for _, one := range page.Data {
			names = append(names, one.Username)
		}

		next = page.NextStartKey
		if next != "" {
			next = "?page_size=2&start_key=" + next
		}
	}

	if !slices.Equal(names, []string{"admin", "alice", "Anna", "bob"}) {
		t.Errorf("users %v", names)
	}

	for _, query := range []string{"?page_size=0", "?page_size=1001", "?page_size=x", "?start_key=*"} {
		e.ask(400, "GET", users+query, admin, "", nil)
	}

	var phone deviceView
	e.ask(201, "POST", path+"/devices", admin, `{"name":"desk"}`, &phone)
	var phones report.Page[deviceView]
	e.ask(200, "GET", path+"/devices", admin, "", &phones)

	if phone.Password == "" || len(phones.Data) != 1 || phones.Data[0].Password != "" || phones.Data[0].ID != phone.ID {
		t.Errorf("%+v %+v", phone, phones)
	}

	e.ask(404, "DELETE", users+"/"+session.User.ID+"/devices/"+phone.ID, admin, "", nil)
	e.ask(422, "POST", users+"/"+session.User.ID+"/devices", admin, `{}`, nil)
	e.ask(204, "DELETE", path+"/devices/"+phone.ID, admin, "", nil)
	e.ask(404, "DELETE", path+"/devices/"+phone.ID, admin, "", nil)

	e.ask(201, "POST", path+"/otp", admin, "", nil)
	login(401, made.Password)
	e.ask(204, "DELETE", path+"/otp", admin, "", nil)

	tag := w.Header().Get("ETag")
	e.ask(200, "PUT", path, withHeader(admin, "If-Match", tag),
		`{"role":"admin","presence_id":"2002","password":"a long new password"}`, nil)
	e.ask(412, "PUT", path, withHeader(admin, "If-Match", tag), `{"role":"user"}`, nil)
	login(401, made.Password)
	login(200, "a long new password")
	e.ask(409, "PUT", path, admin, `{"role":"user","presence_id":"1001"}`, nil)

	for _, body := range []string{`{"role":"root"}`, `{"role":"user","password":"short"}`,
		`{"role":"user","username":"other"}`, `{"presence_id":"1"}`, `{"role":"user","account_id":"sub"}`} {
		e.ask(400, "PUT", path, admin, body, nil)
	}

	e.ask(409, "POST", users, admin, `{"username":"ANNA"}`, nil)
	e.ask(400, "POST", users, admin, `{"username":"eve","password":""}`, nil)
	e.ask(400, "POST", users, admin, `{"username":"eve","password":"password1"}`, nil)

	myself := users + "/" + session.User.ID
	e.ask(409, "DELETE", myself, admin, "", nil)
	e.ask(409, "PUT", myself, admin, `{"role":"user"}`, nil)
	e.ask(200, "PUT", myself, admin, `{"role":"admin"}`, nil)
	e.ask(412, "DELETE", path, withHeader(admin, "If-Match", tag), "", nil)
	e.ask(204, "DELETE", path, withHeader(admin, "If-Match", e.etag(path, admin)), "", nil)
	e.ask(404, "GET", path, admin, "", nil)

	if got := audittest.Entries(t, e.audit, "demo",
		"user.delete user:"+session.User.ID+" user:"+made.ID); len(got) != 1 {
		t.Errorf("the audit log has %q", got)
	}
}

func TestAPIKeysOverHTTP(t *testing.T) {
	e := newEnv(t)
	admin := bearer(e.loginUser("admin").AccessToken)
	end := e.clock.Now().Add(time.Hour).Unix()
	var made keyView
	e.ask(201, "POST", keysPath, admin, `{"name":"wall","scopes":["read","subscribe"]}`, &made)

	if made.AccountID != "demo" || !slices.Equal(made.Scopes, []identity.Scope{"subscribe", "read"}) ||
		made.ExpiresAt != 0 {
		t.Errorf("%+v", made)
	}

	key, path := header{"X-API-Key": made.Key}, keysPath+"/"+made.ID
	e.ask(200, "POST", channelPrefix+"/login", key, `{}`, nil)
	e.ask(403, "GET", keysPath, key, "", nil)
	w := e.ask(200, "GET", path, admin, "", nil)
	if strings.Contains(w.Body.String(), made.Key) {
		t.Error("the key is shown again")
	}

	tag := w.Header().Get("ETag")
	var changed keyView
	e.ask(200, "PUT", path, withHeader(admin, "If-Match", tag),
		`{"name":"sales","scopes":["read"],"expires_at":`+strconv.FormatInt(end, 10)+`}`, &changed)

	if changed.Name != "sales" || changed.ExpiresAt != end {
		t.Errorf("%+v", changed)
	}

	e.ask(412, "PUT", path, withHeader(admin, "If-Match", tag), `{"scopes":["read"]}`, nil)
	e.ask(403, "POST", channelPrefix+"/login", key, `{}`, nil)
	e.ask(200, "PUT", path, admin, `{"scopes":["read"]}`, &changed)

	if changed.ExpiresAt != end {
		t.Error("an absent expires_at changes it")
	}

	for _, body := range []string{`{}`, `{"scopes":[]}`, `{"scopes":["root"]}`, `{"scopes":["read"],"expires_at":1}`,
		`{"scopes":["read"],"expires_at":-1}`,
		`{"scopes":["read"],"account_id":"sub"}`, `{"scopes":["read"],"key":"tk_x"}`} {
		e.ask(400, "PUT", path, admin, body, nil)
	}

	e.clock.Add(time.Hour)
	admin = bearer(e.loginUser("admin").AccessToken)
	e.ask(401, "GET", cdrReportPath+today(), key, "", nil)

	// as it was read
	e.ask(200, "PUT", path, admin, `{"scopes":["read"],"expires_at":`+strconv.FormatInt(end, 10)+`}`, nil)
	e.ask(200, "PUT", path, admin, `{"scopes":["read"],"expires_at":0}`, nil)
	e.ask(200, "GET", cdrReportPath+today(), key, "", nil)
	e.ask(412, "DELETE", path, withHeader(admin, "If-Match", tag), "", nil)
	e.ask(204, "DELETE", path, withHeader(admin, "If-Match", e.etag(path, admin)), "", nil)
	e.ask(401, "GET", cdrReportPath+today(), key, "", nil)
	e.ask(404, "DELETE", path, admin, "", nil)

	// A key manages keys of its account and those below, and does not remove itself.
	manager := e.adminKeyHeader("demo")
	var keys report.Page[keyView]
	e.ask(200, "GET", keysPath, manager, "", &keys)
	its := keysPath + "/" +
		keys.Data[slices.IndexFunc(keys.Data,
			func(k keyView) bool { return slices.Equal(k.Scopes, []identity.Scope{"admin"}) })].ID
	e.ask(409, "DELETE", its, manager, "", nil)
	e.ask(409, "PUT", its, manager, `{"scopes":["read"]}`, nil)

	// the default has more than the key
	e.ask(403, "POST", keysPath, withHeader(manager, "X-Account-ID", "sub"), `{}`, nil)
	e.ask(201, "POST", keysPath, withHeader(manager, "X-Account-ID", "sub"), `{"scopes":["admin"]}`, &made)
	if made.AccountID != "sub" || !slices.Equal(made.Scopes, []identity.Scope{"admin"}) {
		t.Errorf("%+v", made)
	}

	e.ask(404, "GET", keysPath+"/"+made.ID, withHeader(manager, "X-Account-ID", "demo"), "", nil)
	e.ask(200, "GET", keysPath+"/"+made.ID, manager, "", nil)
}

// TestTheDirectoryIsClosedToOthers tries every route of the directory on objects of
// an account above the caller's, of a stranger's and of none, and as a plain user.
func TestTheDirectoryIsClosedToOthers(t *testing.T) {
	e := newEnv(t)
	admin := e.loginUser("admin")
	var above keyView
	e.ask(201, "POST", keysPath, bearer(admin.AccessToken), `{}`, &above)
	foreign, err := e.identity.Directory.CreateUser(t.Context(),
		identity.NewUser{Account: "stranger", Username: "eve", Password: "a long password, river", PresenceID: "1"})
	must(t, err)
	_, stolen, err := e.identity.Directory.CreateAPIKey(t.Context(), identity.NewAPIKey{Account: "stranger"})
	must(t, err)
	below, err := e.identity.Directory.CreateUser(t.Context(),
		identity.NewUser{Account: "sub", Username: "lead", Password: "a long password, river",
			Role: identity.RoleAdmin})
	must(t, err)
	before := audittest.Entries(t, e.audit, "stranger", "")

	sub, plain := e.adminKeyHeader("sub"), bearer(e.loginUser("alice").AccessToken)
	bodies := map[string]string{
		"POST " + accountsPath:                              `{"name":"X","domain":"x.example"}`,
		"PUT " + accountsPath + "/:id":                      `{"name":"X","domain":"x.example"}`,
		"POST " + accountsPath + "/:id/users":               `{"username":"mallory"}`,
		"PUT " + accountsPath + "/:id/users/:user":          `{"role":"admin"}`,
		"POST " + accountsPath + "/:id/users/:user/devices": `{}`, "POST " + keysPath: `{}`,
		"PUT " + keysPath + "/:id": `{"scopes":["admin"]}`,
	}

	for _, r := range (directoryRoutes{e.identity.Directory, e.identity.Credentials, e.api.auth}).routes() {
		body := bodies[r.method+" "+r.path]
		fill := func(account, user, key string) string {
			id := account
			if strings.HasPrefix(r.path, keysPath) {
				id = key
			}
			return strings.NewReplacer(":id", id, ":user", user, ":device", "x").Replace(r.path)
		}

		mine := fill("demo", admin.User.ID, above.ID)
		e.ask(403, r.method, mine, plain, body, nil)
		e.ask(403, r.method, mine, header{"X-API-Key": e.key}, body, nil)
		e.ask(401, r.method, mine, nil, body, nil)
		e.ask(401, r.method, mine, bearer(admin.RefreshToken), body, nil)
		e.ask(403, r.method, mine, bearer(e.eventsToken("admin")), body, nil)

		if !strings.Contains(r.path, ":") {
			continue
		}

		for name, path := range map[string]string{
			"above":                    fill("demo", admin.User.ID, above.ID),
			"a stranger's":             fill("stranger", foreign.ID, stolen.ID),
			"none":                     fill("nowhere", "nobody", "nothing"),
			"the stranger's, as below": fill("sub", foreign.ID, stolen.ID),
		} {
			if name == "the stranger's, as below" && !strings.Contains(r.path, ":user") {
				continue
			}
			if w := e.do(r.method, path, sub, body); w.Code != 404 {
				t.Errorf("%s %s (%s): %d %s", r.method, path, name, w.Code, w.Body)
			}
		}
	}

	e.ask(404, "GET", keysPath, withHeader(sub, "X-Account-ID", "demo"), "", nil)
	e.ask(404, "POST", keysPath, withHeader(sub, "X-Account-ID", "stranger"), `{}`, nil)
	e.ask(400, "POST", accountsPath, sub, `{"name":"X","domain":"x.example","parent_id":"demo"}`, nil)
	var page report.Page[accountView]
	e.ask(200, "GET", accountsPath, sub, "", &page)

	if len(page.Data) != 1 || page.Data[0].ID != "sub" || page.Data[0].ParentID != "" {
		t.Errorf("accounts %+v", page)
	}

	e.ask(204, "DELETE", accountsPath+"/sub/users/"+below.ID, sub, "", nil)
	if after := audittest.Entries(t, e.audit, "stranger", ""); !slices.Equal(before, after) {
		t.Errorf("entries of the stranger: %q", after)
	}
}

func TestListsAreSearched(t *testing.T) {
	e := newEnv(t)
	admin := bearer(e.loginUser("admin").AccessToken)
	for path, want := range map[string]int{
		"/api/v2/accounts?search=SUB.demo":         1,
		"/api/v2/accounts?search=demo&page_size=1": 1,
		"/api/v2/accounts?search=stranger":         0,
		"/api/v2/accounts/demo/users?search=LIC":   1,
		"/api/v2/accounts/demo/users?search=1002":  1,
		"/api/v2/apikeys?search=tes":               1,
		"/api/v2/webhooks?search=nothing":          0,
	} {
		var page struct{ Data []struct{ ID string } }
		e.ask(200, "GET", path, header{"Authorization": admin["Authorization"], "X-Account-ID": "demo"}, "", &page)
		if len(page.Data) != want {
			t.Errorf("%s has %+v", path, page.Data)
		}
	}

	e.ask(400, "GET", "/api/v2/accounts?search=", admin, "", nil)
	e.ask(400, "GET", "/api/v2/accounts/demo/users/nobody/devices?search=x", admin, "", nil)
}
