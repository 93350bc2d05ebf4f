package api

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/origination"
	"trunkline/telephony/number"
)

// addCalls adds the real click to call over fake phones.
func (e *env) addCalls(deps *Deps, log *slog.Logger) {
	e.t.Helper()
	e.platform = &fakePlatform{followed: make(chan struct{})}
	rules, err := origination.ParseRules(origination.RuleTexts{Deny: []string{`^\+1900`}})
	must(e.t, err)
	plan, err := number.NewPlan(number.Settings{Country: "AT"})
	must(e.t, err)
	admission := origination.NewAdmission(
		origination.AdmissionConfig{Rules: rules, Numbers: plan, PerMinute: 30, UserCalls: 20},
		origination.AdmissionDeps{Limiter: identity.NewMemoryLimiter(), Audit: e.audit, Metrics: e.metricRegistry,
			Log: log})
	calls, err := origination.New(e.t.Context(),
		origination.Config{Settings: origination.DefaultSettings(), Node: "n", SingleNode: true}, origination.Deps{
			DB: e.db, Driver: e.platform, Users: e.identity.Directory, Admission: admission, Publisher: discardEvents{},
			Audit:   e.audit,
			Metrics: e.metricRegistry, Log: log,
		})
	must(e.t, err)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := calls.Run(ctx); err != nil {
			e.t.Error(err)
		}
	}()

	e.t.Cleanup(func() { cancel(); <-done })
	<-e.platform.followed
	deps.Calls = calls
}

type discardEvents struct{}

func (discardEvents) Publish(context.Context, ...origination.Event) error { return nil }

// fakePlatform is a fake platform that records its requests.
type fakePlatform struct {
	followed chan struct{} // closed when report is set
	report   func(origination.Progress)

	mu     sync.Mutex
	orders []origination.Order // of Originate, in their order
	refuse error               // Originate's answer, unless nil
}

func (p *fakePlatform) Originate(_ context.Context, order origination.Order) (origination.Placed, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return origination.Placed{}, p.refuse
	}
	p.orders = append(p.orders, order)
	return origination.Placed{CallID: order.ID}, nil
}

func (p *fakePlatform) Cancel(_ context.Context, callID string) error {
	p.report(origination.Progress{CallID: callID, State: origination.Ended, Cause: origination.CauseCancelled})
	return nil
}

func (p *fakePlatform) Follow(ctx context.Context, _ []origination.OpenCall, report func(origination.Progress)) error {
	p.report = report
	close(p.followed)
	<-ctx.Done()
	return nil
}

func (p *fakePlatform) last() origination.Order {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.orders[len(p.orders)-1]
}

const c2c, callsPath = "/ucp/v2/c2c/", "/api/v2/calls/"

type createdCall struct {
	CallID string `json:"origination_call_id"`
}

func (e *env) placeCall(h header, destination string) (id string) {
	e.t.Helper()
	var answer createdCall
	e.ask(201, "POST", c2c+destination, h, "", &answer)
	return answer.CallID
}

func TestClickToCall(t *testing.T) {
	e := newEnv(t)
	alice := bearer(e.loginUser("alice").AccessToken)
	for escaped, want := range map[string]string{
		"1002": "1002", "%2B43123": "+43123", "+43123": "+43123", "a%2Fb": "a/b", "a%20b": "a b", "%252B": "%2B",
		"1;x=2":  "1;x=2",
		"%C3%B6": "ö", "1%3F2": "1?2", "*97": "*97", "%23": "#",
	} {
		id := e.placeCall(alice, escaped)
		if order := e.platform.last(); order.Destination != want || order.Extension != "1001" ||
			order.AccountID != "demo" || order.ID != id {
			t.Errorf("%s: %+v", escaped, order)
		}
	}

	ofStranger := header{"X-Account-ID": "stranger", "Authorization": alice["Authorization"]}
	e.placeCall(ofStranger, "1002")
	if e.platform.last().AccountID != "demo" {
		t.Error("X-Account-ID had an effect")
	}
}

func TestClickToCallRefusals(t *testing.T) {
	e := newEnv(t)
	alice, admin := bearer(e.loginUser("alice").AccessToken), bearer(e.loginUser("admin").AccessToken)
	for name, c := range map[string]struct {
		status int
		h      header
		path   string
		says   string
	}{
		"nobody":             {401, nil, "1002", "A token or an API key is required"},
		"a bad token":        {401, bearer("x.y.z"), "1002", "The token is not valid"},
		"a token of events":  {403, bearer(e.eventsToken("alice")), "1002", "The token is for another purpose"},
		"an API key":         {403, header{"X-API-Key": e.key}, "1002", "API keys have no extension to ring"},
		"a bad API key":      {401, header{"X-API-Key": "no"}, "1002", ""},
		"no extension":       {422, admin, "1002", "The user has no extension to ring: presence_id is not set"},
		"no destination":     {400, alice, "", `"field":"destination","code":"required"`},
		"a space":            {400, alice, "%20", `"field":"destination","code":"required"`},
		"a line feed":        {400, alice, "10%0A02", `"field":"destination","code":"invalid"`},
		"not UTF-8":          {400, alice, "%FF", `"field":"destination","code":"invalid"`},
		"too long":           {400, alice, strings.Repeat("1", 65), `"field":"destination","code":"too_long"`},
		"a forbidden number": {403, alice, "%2B1900555", `"field":"destination","code":"not_allowed"`},
		"a satellite phone":  {403, alice, "%2B88216123456", "International numbers may not be called"},
		"a foreign number":   {403, alice, "0015551230001", `"field":"destination","code":"not_allowed"`},
		"a bad key": {400, header{"Authorization": alice["Authorization"], "Idempotency-Key": "a b"}, "1002",
			`"field":"Idempotency-Key"`},
		"a slash":           {404, alice, "1/2", "No such path"},
		"nobody, to nobody": {401, nil, "", "A token or an API key is required"},
	} {
		t.Run(name, func(t *testing.T) {
			if w := e.ask(c.status, "POST", c2c+c.path, c.h, "", nil); !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("got %s", w.Body)
			}
		})
	}

	e.ask(405, "GET", c2c+"1002", alice, "", nil)
	e.platform.refuse = fault.New(fault.KindRefused, "The platform refused the call with 400")
	e.ask(502, "POST", c2c+"1002", alice, "", nil)
	e.platform.refuse = fault.Unavailable(nil, time.Second, "The platform cannot be reached")
	e.ask(503, "POST", c2c+"1002", alice, "", nil)

	if len(e.platform.orders) > 0 {
		t.Errorf("orders %v", e.platform.orders)
	}
}

func TestClickToCallIsLimited(t *testing.T) {
	e := newEnv(t)
	alice, bob := bearer(e.loginUser("alice").AccessToken), bearer(e.loginUser("bob").AccessToken)
	for range 20 {
		e.placeCall(alice, "1002")
	}

	for i := range 11 {
		says := "Too many calls at once"
		if i == 10 {
			says = "Too many calls, try again later"
		}

		w := e.ask(429, "POST", c2c+"1002", alice, "", nil)
		if !strings.Contains(w.Body.String(), says) || w.Header().Get("Retry-After") == "" {
			t.Errorf("refusal %d: %s", i, w.Body)
		}
	}

	e.placeCall(bob, "1001")
	if logged := e.log.String(); !strings.Contains(logged, "action=call.refuse") ||
		!strings.Contains(logged, "outcome=user_calls") {
		t.Error("the audit log has no refused call")
	}
}

func TestClickToCallUnderAKey(t *testing.T) {
	e := newEnv(t)
	h := bearer(e.loginUser("alice").AccessToken)
	h["Idempotency-Key"] = "k-1"
	first := e.placeCall(h, "1002")
	if again := e.placeCall(h, "1002"); again != first || len(e.platform.orders) != 1 {
		t.Errorf("%s, then %s; %d orders", first, again, len(e.platform.orders))
	}
	e.ask(409, "POST", c2c+"1003", h, "", nil)
}

func TestProgressAndCancel(t *testing.T) {
	e := newEnv(t)
	alice, bob, admin := bearer(e.loginUser("alice").AccessToken), bearer(e.loginUser("bob").AccessToken), bearer(
		e.loginUser("admin").AccessToken)
	key := header{"X-API-Key": e.key}
	id := e.placeCall(alice, "1002")
	e.platform.report(
		origination.Progress{CallID: id, State: origination.RingingUser, At: time.UnixMilli(4_795_169_706_120)})
	var call struct {
		createdCall
		State, Cause string
		History      []struct {
			State string
			At    float64
		}
	}

	waitFor(t, func() bool {
		e.ask(200, "GET", callsPath+id, bob, "", &call)
		return call.State == "ringing_user"
	})

	if call.CallID != id || len(call.History) != 2 || call.History[1].At != 4_795_169_706.120 || call.Cause != "" {
		t.Errorf("call %+v", call)
	}

	e.ask(200, "GET", callsPath+id, key, "", nil)
	e.ask(401, "GET", callsPath+id, nil, "", nil)
	e.ask(200, "GET", callsPath+"%"+strings.ToUpper(fmt.Sprintf("%x", id[0]))+id[1:], alice, "", nil)
	e.ask(404, "GET", callsPath+"nothing", alice, "", nil)
	e.ask(404, "DELETE", callsPath+"nothing", alice, "", nil)
	e.ask(403, "DELETE", callsPath+id, bob, "", nil)

	if w := e.ask(202, "DELETE", callsPath+id, alice, "", nil); w.Body.Len() != 0 {
		t.Errorf("body %s", w.Body)
	}

	waitFor(t, func() bool {
		e.ask(200, "GET", callsPath+id, bob, "", &call)
		return call.State == "ended"
	})

	if call.Cause != "ORIGINATOR_CANCEL" {
		t.Errorf("cause %s", call.Cause)
	}

	e.ask(409, "DELETE", callsPath+id, alice, "", nil)
	for _, h := range []header{admin, key} {
		e.ask(202, "DELETE", callsPath+e.placeCall(alice, "1002"), h, "", nil)
	}

	_, err := e.identity.Directory.CreateUser(t.Context(),
		identity.NewUser{Account: "stranger", Username: "mallory", Password: password, Role: identity.RoleAdmin})
	must(t, err)
	var s sessionView
	e.ask(200, "POST", "/ucp/v2/login", nil, strings.Replace(loginBody("mallory"), "demo.local", "stranger.local", 1),
		&s)
	other := e.placeCall(alice, "1002")
	e.ask(404, "GET", callsPath+other, bearer(s.AccessToken), "", nil)
	e.ask(404, "DELETE", callsPath+other, bearer(s.AccessToken), "", nil)
}
