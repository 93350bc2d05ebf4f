package api

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"trunkline/identity"
)

// The budget of bodies is for all of one address and of all addresses, and is returned.
func TestBodyBudget(t *testing.T) {
	budget := newBodyBudget(bodyLimits{heldBytes: 100, shares: 4})
	for i, tc := range []struct {
		holder string
		bytes  int64
		want   bool
	}{
		{"a", 25, true}, {"a", 1, false}, {"b", 25, true}, {"c", 25, true}, {"d", 20, true}, {"e", 6, false},
		{"e", 5, true},
	} {
		if got := budget.take(tc.holder, tc.bytes); got != tc.want {
			t.Errorf("%d: %s took %d: %v", i, tc.holder, tc.bytes, got)
		}
	}

	budget.giveBack("a", 25)
	if !budget.take("a", 10) || len(budget.holders) != 5 {
		t.Errorf("after a return: %v", budget.holders)
	}
}

// Every request returns what it took.
func TestBodiesAreReturnedToTheBudget(t *testing.T) {
	e := newEnv(t)
	e.ask(200, "POST", "/ucp/v2/login", nil, loginBody("alice"), nil)
	e.ask(400, "POST", "/ucp/v2/login", nil, hostileBody(10<<10), nil)
	e.ask(400, "POST", "/ucp/v2/login", nil, "{", nil)
	e.ask(413, "POST", "/ucp/v2/login", nil, hostileBody(20<<10), nil)
	e.ask(400, "POST", accountsPath, e.as("admin", ""), hostileBody(100<<10), nil)

	if e.api.strangers.heldBytes != 0 || e.api.callers.heldBytes != 0 ||
		len(e.api.strangers.holders)+len(e.api.callers.holders) != 0 {
		t.Errorf("held: %d and %d bytes", e.api.strangers.heldBytes, e.api.callers.heldBytes)
	}
}

// A login by header may have filters of up to 1 MiB; one by password may not, whatever
// header it sends along.
func TestLargeFiltersNeedACredentialInTheHeader(t *testing.T) {
	e := newEnv(t)
	ids := make([]string, 900)
	for i := range ids {
		ids[i] = fmt.Sprintf(`"queue-%035d"`, i)
	}

	filter := `"queue_ids":[` + strings.Join(ids, ",") + `]`
	session := e.loginUser("alice")
	withKey, _, err := e.identity.Directory.CreateAPIKey(t.Context(),
		identity.NewAPIKey{Account: "demo", Scopes: []identity.Scope{identity.ScopeSubscribe}})
	must(t, err)
	ingestOnly, _, err := e.identity.Directory.CreateAPIKey(t.Context(),
		identity.NewAPIKey{Account: "demo", Scopes: []identity.Scope{identity.ScopeIngest}})
	must(t, err)
	withPassword := strings.TrimSuffix(loginBody("alice"), "}") + "," + filter + "}"

	for _, path := range []string{channelPrefix + "/login", channelWSPrefix + "/login"} {
		e.ask(200, "POST", path, bearer(session.AccessToken), "{"+filter+"}", nil)
		e.ask(200, "POST", path, header{"X-API-Key": withKey}, "{"+filter+"}", nil)
		e.ask(403, "POST", path, header{"X-API-Key": ingestOnly}, "{"+filter+"}", nil)
		e.ask(401, "POST", path, bearer("x.y.z"), "{"+filter+"}", nil)
		e.ask(413, "POST", path, nil, withPassword, nil)
		e.ask(413, "POST", path, bearer(session.AccessToken), withPassword, nil)
	}
}

// A client that announces a body and does not send it holds no more than a first buffer.
func TestAnAnnouncedBodyHoldsNothing(t *testing.T) {
	e := newEnv(t)
	server := httptest.NewServer(e.api)
	defer server.Close()

	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }()

	_, err = io.WriteString(conn, "POST /ucp/v2/login HTTP/1.1\r\nHost: x\r\nContent-Length: 16000\r\n\r\n{")
	must(t, err)
	held := func() int64 {
		e.api.strangers.mu.Lock()
		defer e.api.strangers.mu.Unlock()
		return e.api.strangers.heldBytes
	}

	for end := time.Now().Add(patience); held() == 0 && time.Now().Before(end); {
		runtime.Gosched()
	}

	if got := held(); got != firstReadBytes {
		t.Errorf("%d bytes held", got)
	}
}
