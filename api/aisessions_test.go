package api

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"trunkline/config/aiprovider"
	"trunkline/identity"
	"trunkline/internal/fault"
)

const callUUID = "6f1c0a6e-5f0e-4c1b-9f5c-de0c5a2f7d2a"

func TestAnnouncingACall(t *testing.T) {
	e := newEnv(t)
	id := e.createProvider(e.as("admin", "demo")).ID
	body := `{"provider_id":"` + id + `","uuid":"` + strings.ToUpper(callUUID) +
		`","callId":"c","otherLegCallId":"d",` +
		`"callerIdNumber":"+15551230001","calleeIdNumber":"+15551230002"}`
	w := e.ask(201, "POST", "/api/v2/ai_sessions", header{"X-API-Key": e.key}, body, nil)
	if got := w.Body.String(); got != `{"provider_id":"`+id+`","uuid":"`+callUUID+`"}` {
		t.Errorf("got %s", got)
	}

	e.ask(201, "POST", "/api/v2/ai_sessions", bearer(e.loginUser("admin").AccessToken),
		`{"provider_id":"`+id+`","uuid":"`+callUUID+`"}`, nil)
	want := []aiprovider.Announcement{
		{AccountID: "demo", ProviderID: id, UUID: callUUID, CallID: "c", OtherLegCallID: "d",
			CallerIDNumber: "+15551230001", CalleeIDNumber: "+15551230002"},
		{AccountID: "demo", ProviderID: id, UUID: callUUID},
	}
	if fmt.Sprint(e.ai.announced) != fmt.Sprint(want) {
		t.Errorf("announced %v", e.ai.announced)
	}

	e.ai.refuse = fault.Conflict("The UUID is announced already")
	e.ask(409, "POST", "/api/v2/ai_sessions", header{"X-API-Key": e.key}, body, nil)
}

func TestAnnouncementsThatAreRefused(t *testing.T) {
	e := newEnv(t)
	id := e.createProvider(e.as("admin", "demo")).ID
	good := `{"provider_id":"` + id + `","uuid":"` + callUUID + `"}`
	key := header{"X-API-Key": e.key}

	for change, want := range map[[2]string]string{
		{`"provider_id":"` + id + `",`, ``}:                            `"provider_id","code":"required"`,
		{`"` + id + `"`, `""`}:                                         `"provider_id","code":"required"`,
		{`"` + id + `"`, `null`}:                                       `"provider_id","code":"wrong_type"`,
		{`,"uuid":"` + callUUID + `"`, ``}:                             `"uuid","code":"required"`,
		{callUUID, ``}:                                                 `"uuid","code":"required"`,
		{callUUID, `call-1`}:                                           `"uuid","code":"invalid"`,
		{callUUID, strings.ReplaceAll(callUUID, "-", "")}:              `"uuid","code":"invalid"`,
		{callUUID, "{" + callUUID + "}"}:                               `"uuid","code":"invalid"`,
		{callUUID, "urn:uuid:" + callUUID}:                             `"uuid","code":"invalid"`,
		{`"` + callUUID + `"`, `7`}:                                    `"uuid","code":"wrong_type"`,
		{`}`, `,"callId":7}`}:                                          `"callId","code":"wrong_type"`,
		{`}`, `,"callId":"a\nb"}`}:                                     `"callId","code":"invalid"`,
		{`}`, `,"callerIdNumber":"` + strings.Repeat("1", 129) + `"}`}: `"callerIdNumber","code":"too_long"`,
		{`}`, `,"caller":"1"}`}:                                        `"caller","code":"unknown"`,
	} {
		w := e.ask(400, "POST", "/api/v2/ai_sessions", key, strings.Replace(good, change[0], change[1], 1), nil)
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%v: %s", change, w.Body)
		}
	}

	stranger, _, err := e.identity.Directory.CreateAPIKey(t.Context(),
		identity.NewAPIKey{Account: "stranger", Name: "test", Scopes: []identity.Scope{identity.ScopeCalls}})
	must(t, err)

	for name, c := range map[string]struct {
		status int
		header header
		body   string
	}{
		"nobody":           {401, nil, good},
		"a wrong key":      {401, header{"X-API-Key": "tk_x"}, good},
		"a plain user":     {403, bearer(e.loginUser("alice").AccessToken), good},
		"a channel token":  {403, bearer(e.eventsToken("admin")), good},
		"a stranger's key": {404, header{"X-API-Key": stranger}, good},
		"another account":  {404, header{"X-API-Key": e.key, "X-Account-ID": "sub"}, good},
		"no such provider": {404, key, strings.Replace(good, id, "nope", 1)},
	} {
		if w := e.do("POST", "/api/v2/ai_sessions", c.header, c.body); w.Code != c.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}

	if len(e.ai.announced) > 0 {
		t.Errorf("announced %v", e.ai.announced)
	}
}

func TestWhoMayBringACallsAudio(t *testing.T) {
	e := newEnv(t)
	id := e.createProvider(e.as("admin", "demo")).ID
	subs := e.createProvider(e.as("admin", "sub")).ID
	stranger, _, err := e.identity.Directory.CreateAPIKey(t.Context(),
		identity.NewAPIKey{Account: "stranger", Name: "test", Scopes: []identity.Scope{identity.ScopeCalls}})
	must(t, err)

	admin, alice := e.loginUser("admin").AccessToken, e.loginUser("alice").AccessToken
	tokenOf := func(role identity.Role) string {
		h := e.userWith("the-"+string(role), "demo", role, "", identity.Limits{})
		return strings.TrimPrefix(h["Authorization"], "Bearer ")
	}

	for name, c := range map[string]struct {
		status        int
		query, target string
		header        header
	}{
		"no token":                     {401, "", id, nil},
		"a bad token":                  {401, "?token=a.b.c", id, nil},
		"a bad key":                    {401, "?token=tk_x", id, nil},
		"two credentials":              {401, "?token=" + e.key, id, header{"X-API-Key": e.key}},
		"a plain user":                 {403, "?token=" + alice, id, nil},
		"a plain user, in a header":    {403, "", id, bearer(alice)},
		"a supervisor":                 {403, "?token=" + tokenOf(identity.RoleSupervisor), id, nil},
		"an agent":                     {403, "?token=" + tokenOf(identity.RoleAgent), id, nil},
		"an auditor":                   {403, "?token=" + tokenOf(identity.RoleAuditor), id, nil},
		"a channel token":              {403, "?token=" + e.eventsToken("admin"), id, nil},
		"another account's":            {404, "?token=" + stranger, id, nil},
		"no such provider":             {404, "?token=" + e.key, "nope", nil},
		"not the account named":        {404, "?token=" + e.key, subs, header{"X-Account-ID": "demo"}},
		"a key, without upgrade":       {426, "?token=" + e.key, id, nil},
		"a token, without upgrade":     {426, "?token=" + admin, id, nil},
		"a key in a header":            {426, "", id, header{"X-API-Key": e.key}},
		"a token in a header":          {426, "", id, bearer(admin)},
		"an account below":             {426, "?token=" + e.key, subs, nil},
		"an upgrade to something else": {426, "?token=" + e.key, id, header{"Connection": "Upgrade", "Upgrade": "h2c"}},
	} {
		if w := e.do("GET", "/media/v1/"+c.target+c.query, c.header, ""); w.Code != c.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}

	if len(e.ai.served) > 0 {
		t.Errorf("served %v", e.ai.served)
	}
}

// mod_audio_stream sends an origin, and that of http for an address of TLS.
func TestACallsSocketIsHandedOver(t *testing.T) {
	e := newEnv(t)
	id := e.createProvider(e.as("admin", "demo")).ID
	server := httptest.NewServer(e.api)
	defer server.Close()

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer conn.Close()

	_, err = io.WriteString(conn,
		"GET /media/v1/"+id+"?token="+e.key+" HTTP/1.1\r\nHost: x\r\nOrigin: http://switch.example\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Version: 13\r\n\r\n")
	must(t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)

	if answer.StatusCode != 101 || len(e.ai.served) != 1 || e.ai.served[0].Headers["Authorization"] != "Bearer sesame" {
		t.Errorf("%d, served %v", answer.StatusCode, e.ai.served)
	}

	// The server does not wait for hijacked connections.
	waitFor(t, func() bool { return strings.Contains(e.log.String(), "status=101") })
	for line := range strings.Lines(e.log.String()) {
		if strings.Contains(line, e.key) || strings.Contains(line, "msg=request ") && strings.Contains(line, id) {
			t.Errorf("logged %s", line)
		}
	}
}
