package api

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"trunkline/audit/audittest"
	"trunkline/event"
	"trunkline/fanout"
	"trunkline/identity"
	"trunkline/internal/fault"
)

var _ Channel = (*fanout.Fanout)(nil)

func TestBothPathSetsLogIn(t *testing.T) {
	e := newEnv(t)
	for _, prefix := range []string{channelPrefix, channelWSPrefix} {
		var got struct {
			AccessToken string `json:"access_token"`
			ExpiresIn   int    `json:"expires_in"`
		}
		body := strings.TrimSuffix(loginBody("alice"), "}") + `,"account_ids":["sub"],"event_types":["AGENT_LOGIN"]}`
		e.ask(200, "POST", prefix+"/login", nil, body, &got)

		if got.ExpiresIn != 86400 {
			t.Errorf("expires_in %d", got.ExpiresIn)
		}

		p, err := e.identity.Tokens.Authenticate(t.Context(), got.AccessToken, "events")
		if err != nil || len(p.AccountIDs) != 1 || p.AccountIDs[0] != "sub" || len(p.EventTypes) != 1 {
			t.Errorf("principal %+v, %v", p, err)
		}
	}
}

func TestAKeyLogsInToTheChannel(t *testing.T) {
	e := newEnv(t)
	key := e.keyWith(identity.ScopeSubscribe)
	for _, prefix := range []string{channelPrefix, channelWSPrefix} {
		for _, credential := range []header{{"X-API-Key": key},
			{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("x:"+key))}} {
			var got sessionView
			e.ask(200, "POST", prefix+"/login", credential, `{"account_ids":["sub"]}`, &got)
			p, err := e.identity.Tokens.Authenticate(t.Context(), got.AccessToken, "events")
			if err != nil || len(p.AccountIDs) != 1 || p.UserID != "" || p.KeyID == "" {
				t.Errorf("principal %+v, %v", p, err)
			}

			e.ask(200, "GET", prefix+"/stats", bearer(got.AccessToken), "", nil)
			e.ask(403, "GET", auditPath+today(), bearer(got.AccessToken), "", nil)
		}

		e.ask(401, "POST", prefix+"/login", header{"X-API-Key": key + "x"}, `{}`, nil)
		e.ask(401, "POST", prefix+"/login", header{"X-API-Key": key, "Authorization": "Bearer x"}, `{}`, nil)
		e.ask(403, "POST", prefix+"/login", header{"X-API-Key": e.key}, `{}`, nil)
		e.ask(400, "POST", prefix+"/login", header{"X-API-Key": key}, `{"account_ids":["stranger"]}`, nil)
		e.ask(400, "POST", prefix+"/login", header{"X-API-Key": key}, `{"otp":"123456"}`, nil)
		e.ask(401, "POST", prefix+"/login", header{"X-API-Key": key},
			`{"username":"alice","password":"wrong","domain":"demo.local"}`, nil)
		e.ask(200, "POST", prefix+"/login", header{"X-API-Key": key}, loginBody("alice"), nil)
	}

	logins := audittest.Entries(t, e.audit, "demo", "login apikey:")
	if len(logins) != 4 {
		t.Errorf("the audit log has %v", logins)
	}
}

func TestChannelLoginFilters(t *testing.T) {
	e := newEnv(t)
	for _, tc := range []struct{ name, filter, field, code string }{
		{"an account out of sight", `"account_ids":["demo","stranger"]`, "account_ids[1]", "unknown_account"},
		{"an account that is not", `"account_ids":["'; --"]`, "account_ids[0]", "unknown_account"},
		{"an unknown type", `"event_types":["AGENT_LOGIN","NOPE"]`, "event_types[1]", "unknown_type"},
		{"no array", `"account_ids":"demo"`, "account_ids", "wrong_type"},
		{"no strings", `"event_types":["AGENT_LOGIN",1]`, "event_types[1]", "wrong_type"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got failure
			e.ask(400, "POST", channelPrefix+"/login", nil,
				strings.TrimSuffix(loginBody("alice"), "}")+","+tc.filter+"}", &got)
			if len(got.Errors) != 1 || got.Errors[0].Field != tc.field || got.Errors[0].Code != tc.code {
				t.Errorf("%+v", got)
			}
		})
	}

	e.ask(200, "POST", channelPrefix+"/login", nil,
		strings.TrimSuffix(loginBody("alice"), "}")+`,"account_ids":[],"event_types":[]}`, nil)
}

// In the two logins null means absent, and the domain may be absent where one user has the name.
func TestLoginsTakeNullAsAbsent(t *testing.T) {
	e := newEnv(t)
	const nulls = `{"username":"alice","password":"` + password +
		`","domain":null,"otp":null,"account_ids":null,"event_types":null,"queue_ids":null,"agent_ids":null,"call_ids":null,"names":null}`

	for _, prefix := range []string{channelPrefix, channelWSPrefix} {
		e.ask(200, "POST", prefix+"/login", nil, nulls, nil)
		e.ask(400, "POST", prefix+"/login", nil, strings.Replace(nulls, `"names":null`, `"names":[null]`, 1), nil)
		e.ask(400, "POST", prefix+"/login", nil, strings.Replace(nulls, `"domain":null`, `"domain":""`, 1), nil)
	}

	e.ask(200, "POST", "/ucp/v2/login", nil, `{"username":"alice","password":"`+password+`","domain":null,"otp":null}`,
		nil)
	e.ask(200, "POST", "/ucp/v2/login", nil, `{"username":"alice","password":"`+password+`"}`, nil)
}

func TestHealthAndStats(t *testing.T) {
	e := newEnv(t)
	e.channel.status, e.channel.total = fanout.StatusDegraded, 3
	e.channel.clients = []fanout.Client{{ID: "c1", AccountID: "demo", ConnectedAt: 1, LastPing: 2}}
	events, portal := e.eventsToken("alice"), e.loginUser("bob").AccessToken

	for _, prefix := range []string{channelPrefix, channelWSPrefix} {
		var health struct {
			Status    string `json:"status"`
			Total     int    `json:"total_connections"`
			Timestamp int64  `json:"timestamp"`
		}
		e.ask(200, "GET", prefix+"/health", nil, "", &health)

		if health.Status != "degraded" || health.Total != 3 ||
			time.Since(time.Unix(health.Timestamp, 0)) > time.Minute {
			t.Errorf("health %+v", health)
		}

		for _, token := range []string{events, portal} {
			w := e.ask(200, "GET", prefix+"/stats", bearer(token), "", nil)
			if !strings.HasPrefix(w.Body.String(),
				`{"total_connections":1,"clients":[{"id":"c1","account_id":"demo","connected_at":1,"last_ping":2}],"timestamp":`) {
				t.Errorf("stats %s", w.Body)
			}
			if e.channel.caller.AccountID != "demo" {
				t.Errorf("asked for %+v", e.channel.caller)
			}
		}

		e.ask(401, "GET", prefix+"/stats", nil, "", nil)
		e.ask(401, "GET", prefix+"/stats", header{"X-API-Key": e.key}, "", nil)
	}

	e.channel.clients = nil
	if w := e.ask(200, "GET", channelPrefix+"/stats", bearer(events), "", nil); !strings.Contains(w.Body.String(),
		`"clients":[]`) {
		t.Errorf("stats %s", w.Body)
	}
}

func TestSnapshot(t *testing.T) {
	e := newEnv(t)
	e.channel.current = &fanout.Snapshot{
		EventID: "cc_evt_1795169706190966784", Cursor: "cc_evt_1795169706190966784.AcQTBg", Timestamp: 3,
		Agents: []fanout.SnapshotAgent{{AccountID: "demo", AgentID: "1002", State: event.Talking, Status: "available",
			Since: 1, Queues: []string{"q"}, CallID: "c"}},
		Calls: []fanout.SnapshotCall{{AccountID: "demo", CallID: "c", QueueID: "q", State: event.Waiting, Since: 2,
			Position: 1}},
		Queues: []fanout.SnapshotQueue{{AccountID: "demo", QueueID: "q", Waiting: 1, LongestWaitSince: 2,
			Agents: map[event.State]int{event.Talking: 1}}},
	}
	const want = `{"event_id":"cc_evt_1795169706190966784","cursor":"cc_evt_1795169706190966784.AcQTBg","timestamp":3,` +
		`"agents":[{"account_id":"demo","agent_id":"1002","state":"talking","status":"available","since":1,"queues":["q"],"call_id":"c"}],` +
		`"calls":[{"account_id":"demo","call_id":"c","queue_id":"q","agent_id":"","state":"waiting","since":2,"position":1}],` +
		`"queues":[{"account_id":"demo","queue_id":"q","waiting":1,"longest_wait_since":2,"talking":0,"agents":{"talking":1}}]}`
	events, portal := e.eventsToken("alice"), e.loginUser("bob").AccessToken

	for _, prefix := range []string{channelPrefix, channelWSPrefix} {
		if w := e.ask(200, "GET", prefix+"/snapshot", bearer(events), "", nil); w.Body.String() != want {
			t.Errorf("got %s", w.Body)
		}
		if e.channel.caller.AccountID != "demo" || e.channel.caller.Username != "alice" {
			t.Errorf("asked for %+v", e.channel.caller)
		}

		e.ask(401, "GET", prefix+"/snapshot", nil, "", nil)
		e.ask(401, "GET", prefix+"/snapshot", header{"X-API-Key": e.key}, "", nil)
		e.ask(403, "GET", prefix+"/snapshot", bearer(portal), "", nil)
		e.ask(405, "POST", prefix+"/snapshot", bearer(events), "", nil)
	}

	e.channel.current = &fanout.Snapshot{Cursor: ".AQAA", Agents: []fanout.SnapshotAgent{},
		Calls: []fanout.SnapshotCall{}, Queues: []fanout.SnapshotQueue{}}
	if w := e.ask(200, "GET", channelPrefix+"/snapshot", bearer(events), "", nil); !strings.Contains(w.Body.String(),
		`"event_id":""`) {
		t.Errorf("got %s", w.Body)
	}

	e.channel.refuse = fault.Unavailable(nil, time.Second, "not complete yet")
	w := e.ask(503, "GET", channelPrefix+"/snapshot", bearer(events), "", nil)
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
	}
}

func TestSubscriptionRefusals(t *testing.T) {
	e := newEnv(t)
	for _, tc := range []struct {
		err    error
		status int
		header header
	}{
		{fault.InvalidField("since", "invalid", "not a position"), 400, nil},
		{fault.Unauthenticated("The token is not valid"), 401, header{"WWW-Authenticate": "Bearer"}},
		{fault.Forbidden("this origin is not allowed"), 403, nil},
		{fault.New(fault.KindGone, "not kept any more"), 410, nil},
		{fault.Limited(1500*time.Millisecond, "too many connections"), 429, header{"Retry-After": "2"}},
		{fault.Unavailable(nil, 0, "shutting down"), 503, header{"Retry-After": "1"}},
		{errors.New("the secret reason"), 500, nil},
	} {
		e.channel.refuse = tc.err
		for _, path := range []string{channelPrefix + "/ws", channelWSPrefix, channelPrefix + "/stream",
			channelWSPrefix + "/stream"} {
			w := e.ask(tc.status, "GET", path, nil, "", nil)
			for name, value := range tc.header {
				if got := w.Header().Get(name); got != value {
					t.Errorf("%s: %s: %q", path, name, got)
				}
			}

			if strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%s: %s", path, w.Body)
			}
		}
	}
}

func TestSocketOverARealConnection(t *testing.T) {
	e := newEnv(t, func(c *Config, _ *Deps) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	server := httptest.NewServer(e.api)
	defer server.Close()

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }()

	_, err = conn.Write(
		[]byte("GET /ws/v1/cc_events?token=sesame HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
			"X-Forwarded-For: 192.0.2.7\r\n\r\n"))
	must(t, err)
	answer := bufio.NewReader(conn)
	r, err := http.ReadResponse(answer, nil)
	must(t, err)
	greeting := make([]byte, 5)
	if _, err := answer.Read(greeting); r.StatusCode != 101 || string(greeting) != "hello" || err != nil {
		t.Errorf("%d %q %v", r.StatusCode, greeting, err)
	}

	// The handler continues after the greeting, and the server does not wait for hijacked
	// connections.
	waitFor(t, func() bool { return strings.Contains(e.log.String(), "route=/ws/v1/cc_events ") })
	server.Close()
	if got := e.channel.requests[0]; got.Address != "192.0.2.7" || got.HTTP.URL.Query().Get("token") != "sesame" {
		t.Errorf("%+v", got)
	}
	if log := e.log.String(); !strings.Contains(log, "status=101") || strings.Contains(log, "sesame") {
		t.Errorf("logged %s", log)
	}
}

func TestStream(t *testing.T) {
	e := newEnv(t)
	if w := e.ask(200, "GET", channelPrefix+"/stream?token=sesame", nil, "", nil); w.Body.String() != "data: {}\n\n" {
		t.Errorf("%q", w.Body)
	}
}

// A role that does not run here leaves its fields of Deps nil.
func TestANodeWithoutTheRolesHasNoneOfTheirRoutes(t *testing.T) {
	e := newEnv(t, func(_ *Config, d *Deps) {
		d.Channel, d.ChannelLogins, d.ChannelTokens, d.Ingest, d.Portal, d.Sessions = nil, nil, nil, nil, nil, nil
	})
	var got failure

	for _, path := range []string{channelPrefix + "/health", channelWSPrefix, "/ucp/v2/login"} {
		w := httptest.NewRecorder()
		e.api.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		must(t, json.Unmarshal(w.Body.Bytes(), &got))
		if w.Code != 404 || got.Message != "No such path" {
			t.Errorf("%s: %d %+v", path, w.Code, got)
		}
	}
}

// Channel tokens end with a logout on both sets of paths, alone.
func TestChannelLogout(t *testing.T) {
	e := newEnv(t)
	session := e.loginUser("alice")
	exchange := func() string {
		var s sessionView
		e.ask(http.StatusOK, "POST", channelPrefix+"/login", bearer(session.AccessToken), `{}`, &s)
		return s.AccessToken
	}

	for _, prefix := range []string{channelPrefix, channelWSPrefix} {
		other := e.eventsToken("alice")
		for name, token := range map[string]string{"password": e.eventsToken("alice"), "exchange": exchange()} {
			e.ask(http.StatusNoContent, "POST", prefix+"/logout", bearer(token), "", nil)
			for _, path := range []string{"/snapshot", "/stats"} {
				if w := e.do("GET", prefix+path, bearer(token), ""); w.Code != http.StatusUnauthorized {
					t.Errorf("%s%s after a logout, %s: %d", prefix, path, name, w.Code)
				}
			}

			e.ask(http.StatusUnauthorized, "POST", prefix+"/logout", bearer(token), "", nil)
		}

		e.ask(http.StatusOK, "GET", prefix+"/stats", bearer(other), "", nil)
		e.ask(http.StatusForbidden, "POST", prefix+"/logout", bearer(session.AccessToken), "", nil)
		e.ask(http.StatusUnauthorized, "POST", prefix+"/logout", header{"X-API-Key": e.key}, "", nil)
	}

	exchange() // the portal session is as it was
}

func TestChannelTokenForAPortalToken(t *testing.T) {
	e := newEnv(t)
	for _, path := range []string{channelPrefix + "/login", channelWSPrefix + "/login"} {
		portal := e.loginUser("alice")
		var channel sessionView
		e.ask(200, "POST", path, bearer(portal.AccessToken), `{"event_types":["AGENT_LOGIN"]}`, &channel)
		e.ask(200, "GET", channelPrefix+"/stats", bearer(channel.AccessToken), "", nil)
		e.ask(400, "POST", path, bearer(portal.AccessToken), `{"event_types":["NOPE"]}`, nil)
		e.ask(403, "POST", path, bearer(channel.AccessToken), `{}`, nil)
		e.ask(401, "POST", path, bearer("x.y.z"), `{}`, nil)
		e.ask(400, "POST", path, nil, `{}`, nil)

		// Credentials in the body take precedence over all others.
		e.ask(200, "POST", path, bearer("stale"), loginBody("bob"), nil)
		e.ask(204, "POST", "/ucp/v2/logout", bearer(portal.AccessToken), "", nil)
		e.ask(401, "GET", channelPrefix+"/stats", bearer(channel.AccessToken), "", nil)
		e.ask(401, "POST", path, bearer(portal.AccessToken), `{}`, nil)
	}
}
