package kazoo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/origination"
)

// exchangeOf is one request that the script expects, and the answer to it.
type exchangeOf struct {
	method, uri string
	data        string // JSON of the body's data; "" for no body
	token       string
	status      int
	answer      string
}

// kazoo is a Crossbar that is strict: anything but its script is a fault.
type kazoo struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	script []exchangeOf
}

func newKazoo(t *testing.T, script ...exchangeOf) *kazoo {
	k := &kazoo{t: t, script: script}
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(func() {
		k.Close()
		if len(k.script) > 0 && !t.Failed() {
			t.Errorf("not asked for: %+v", k.script)
		}
	})
	return k
}

func (k *kazoo) serve(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()

	body, err := io.ReadAll(r.Body)
	if err != nil || len(k.script) == 0 {
		k.t.Errorf("unexpected: %s %s %s (%v)", r.Method, r.RequestURI, body, err)
		w.WriteHeader(http.StatusTeapot)
		return
	}

	want := k.script[0]
	k.script = k.script[1:]
	var sent struct{ Data json.RawMessage }

	if len(body) > 0 {
		if err := json.Unmarshal(body, &sent); err != nil {
			k.t.Errorf("body %s: %v", body, err)
		}
	}

	if r.Method != want.method || r.RequestURI != want.uri || string(sent.Data) != want.data ||
		r.Header.Get("X-Auth-Token") != want.token || r.Header.Get("Content-Type") != "application/json" {
		k.t.Errorf("got  %s %s %s token %q\nwant %s %s %s token %q", r.Method, r.RequestURI, sent.Data,
			r.Header.Get("X-Auth-Token"),
			want.method, want.uri, want.data, want.token)
	}

	w.WriteHeader(want.status)
	_, _ = io.WriteString(w, want.answer)
}

func (k *kazoo) expect(script ...exchangeOf) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.script = append(k.script, script...)
}

func (k *kazoo) newDriver() *Driver {
	k.t.Helper()
	d, err := New(Config{Settings: Settings{URL: k.URL + "/", APIKey: "the key", Accounts: []string{"demo=kz1"}},
		Timeout: 2 * time.Minute, PollEvery: 5 * time.Millisecond},
		k.Client(), slog.New(slog.DiscardHandler))
	if err != nil {
		k.t.Fatal(err)
	}
	return d
}

func loginAs(token string) exchangeOf {
	return exchangeOf{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 201,
		`{"auth_token":"` + token + `","data":{"account_id":"kz0"}}`}
}

func provisioned(id string) exchangeOf {
	return exchangeOf{"PUT", "/v2/accounts/kz1/clicktocall",
		`{"name":"trunkline u1","extension":"1001","presence_id":"1001","dial_first":"extension","auth_required":true,"custom_sip_headers":{"svc_call_type":"clicktocall"}}`,
		"t1", 201, `{"data":{"id":"` + id + `"},"status":"success"}`}
}

func connectedAs(id string, status int, answer string) exchangeOf {
	return exchangeOf{"POST", "/v2/accounts/kz1/clicktocall/" + id + "/connect?contact=%2B43+1", `{"contact":"+43 1"}`,
		"t1", status, answer}
}

func channelOf(status int, answer string) exchangeOf {
	return exchangeOf{"GET", "/v2/accounts/kz1/channels/o1", "", "t1", status, answer}
}

func historyOf(answer string) exchangeOf {
	return exchangeOf{"GET", "/v2/accounts/kz1/clicktocall/c1/history", "", "t1", 200, answer}
}

var hangUpIt = exchangeOf{"POST", "/v2/accounts/kz1/channels/o1", `{"action":"hangup"}`, "t1", 200, `{}`}

func order(resource string) origination.Order {
	return origination.Order{ID: "ours", AccountID: "demo", UserID: "u1", Extension: "1001", Destination: "+43 1",
		ClickToCallID: resource}
}

func TestOriginate(t *testing.T) {
	const accepted = `{"data":{"origination_call_id":"o1","outbound_call_id":"b1","call_id":"l1"}}`
	for name, c := range map[string]struct {
		resource string
		script   []exchangeOf
		want     origination.Placed
		kind     fault.Kind
	}{
		"a first call provisions": {"",
			[]exchangeOf{loginAs("t1"), provisioned("c1"), connectedAs("c1", 202, accepted)},
			origination.Placed{CallID: "o1", ClickToCallID: "c1"}, ""},
		"a later one does not": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 202, accepted)},
			origination.Placed{CallID: "o1"}, ""},
		"the outbound id is the next best": {"c1",
			[]exchangeOf{loginAs("t1"),
				connectedAs("c1", 202, `{"data":{"origination_call_id":"","outbound_call_id":"b1","call_id":"l1"}}`)},
			origination.Placed{CallID: "b1"}, ""},
		"then the call's": {"c1",
			[]exchangeOf{loginAs("t1"), connectedAs("c1", 200, `{"data":{"origination_call_id":7,"call_id":"l1"}}`)},
			origination.Placed{CallID: "l1"}, ""},
		"an answer without an id": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 202, `{"data":{}}`)},
			origination.Placed{}, ""},
		"an answer without data": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 202, `{}`)},
			origination.Placed{}, ""},
		"an answer that is not JSON": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 202, `<html>`)},
			origination.Placed{}, ""},
		"an empty answer": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 202, ``)},
			origination.Placed{}, ""},
		"data of another shape": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 202, `{"data":"success"}`)},
			origination.Placed{}, ""},
		"an id that cannot be one": {"c1",
			[]exchangeOf{loginAs("t1"), connectedAs("c1", 202, `{"data":{"call_id":"a b"}}`)}, origination.Placed{},
			""},
		"a deleted resource": {"c1",
			[]exchangeOf{loginAs("t1"), connectedAs("c1", 404, `{}`), provisioned("c2"),
				connectedAs("c2", 202, accepted)}, origination.Placed{CallID: "o1", ClickToCallID: "c2"}, ""},
		"deleted again": {"c1",
			[]exchangeOf{loginAs("t1"), connectedAs("c1", 404, `{}`), provisioned("c2"), connectedAs("c2", 404, `{}`)},
			origination.Placed{ClickToCallID: "c2"}, fault.KindRefused},
		"a new one that is not there": {"",
			[]exchangeOf{loginAs("t1"), provisioned("c1"), connectedAs("c1", 404, `{}`)},
			origination.Placed{ClickToCallID: "c1"}, fault.KindRefused},
		"refused": {"c1",
			[]exchangeOf{loginAs("t1"), connectedAs("c1", 400, `{"message":"not in whitelist"}`)}, origination.Placed{},
			fault.KindRefused},
		"provisioning refused": {"",
			[]exchangeOf{loginAs("t1"), {"PUT", "/v2/accounts/kz1/clicktocall", provisioned("").data, "t1", 400, `{}`}},
			origination.Placed{}, fault.KindRefused},
		"provisioned without an id": {"", []exchangeOf{loginAs("t1"), provisioned("")}, origination.Placed{},
			fault.KindRefused},
		"broken": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 500, `{}`)},
			origination.Placed{}, fault.KindUnavailable},
		"too much": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 429, `{}`)},
			origination.Placed{}, fault.KindUnavailable},
		"sent elsewhere": {"c1", []exchangeOf{loginAs("t1"), connectedAs("c1", 307, ``)},
			origination.Placed{}, fault.KindRefused},
		"a wrong key": {"c1", []exchangeOf{{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 401, `{}`}},
			origination.Placed{},
			fault.KindRefused},
		"a login without a token": {"c1", []exchangeOf{{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 201, `{}`}},
			origination.Placed{},
			fault.KindRefused},
		"a login that is not JSON": {"c1",
			[]exchangeOf{{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 201, `<html>`}}, origination.Placed{},
			fault.KindUnavailable},
		"an old token is replaced": {"c1",
			[]exchangeOf{loginAs("t0"), old(connectedAs("c1", 401, `{}`)), loginAs("t1"),
				connectedAs("c1", 202, accepted)},
			origination.Placed{CallID: "o1"}, ""},
		"a new one is not": {"c1",
			[]exchangeOf{loginAs("t0"), old(connectedAs("c1", 401, `{}`)), loginAs("t1"), connectedAs("c1", 401, `{}`)},
			origination.Placed{}, fault.KindRefused},
	} {
		t.Run(name, func(t *testing.T) {
			placed, err := newKazoo(t, c.script...).newDriver().Originate(t.Context(), order(c.resource))
			if placed != c.want || fault.KindOf(err) != c.kind {
				t.Errorf("got %+v, %v", placed, err)
			}
		})
	}
}

func old(e exchangeOf) exchangeOf { e.token = "t0"; return e }

func TestATokenIsAskedForOnce(t *testing.T) {
	k := newKazoo(t, loginAs("t1"))
	for range 10 {
		k.expect(connectedAs("c1", 202, `{}`))
	}

	d := k.newDriver()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := d.Originate(t.Context(), order("c1")); err != nil {
				t.Error(err)
			}
		})
	}

	all.Wait()
}

func TestKazooAway(t *testing.T) {
	k := newKazoo(t)
	d := k.newDriver()
	k.Close()
	_, err := d.Originate(t.Context(), order("c1"))
	if f := fault.As(err); f.Kind != fault.KindUnavailable || f.RetryAfter <= 0 {
		t.Errorf("nobody there: %v", err)
	}

	hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server see the client leave
		<-r.Context().Done()
	}))
	defer hangs.Close()

	d, err = New(Config{Settings: Settings{URL: hangs.URL, APIKey: "k"}, Timeout: 20 * time.Millisecond},
		hangs.Client(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	_, err = d.Originate(t.Context(), order("c1"))
	if fault.KindOf(err) != fault.KindUnavailable {
		t.Errorf("no answer: %v", err)
	}
}

// collectReports follows d until the test ends, and returns its reports so far.
func collectReports(t *testing.T, d *Driver, open ...origination.Open) (reported func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- d.Follow(ctx, open, func(p origination.Progress) {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, fmt.Sprintf("%s %s %s", p.CallID, p.State, p.Cause))
		})
	}()

	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})

	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func within(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

func TestACallIsFollowed(t *testing.T) {
	k := newKazoo(t, loginAs("t1"), connectedAs("c1", 202, `{"data":{"call_id":"o1"}}`),
		channelOf(404, `{}`), channelOf(200, `{"data":{"answered":false}}`), channelOf(500, `{}`),
		channelOf(200, `{"data":{"answered":true}}`),
		channelOf(200, `{"data":{"answered":true}}`),
		channelOf(200, `{"data":{"answered":true,"other_leg_call_id":"x"}}`), channelOf(404, `{}`),
		historyOf(`{"data":[{"call_id":"other","cause":"NO_ANSWER"},{"call_id":"o1","cause":"NORMAL_CLEARING"}]}`))
	d := k.newDriver()
	if _, err := d.Originate(t.Context(), order("c1")); err != nil {
		t.Fatal(err)
	}

	reported := collectReports(t, d)
	want := []string{"o1 ringing_user ", "o1 user_answered ", "o1 bridged ", "o1 ended NORMAL_CLEARING"}
	within(t, "it has ended", func() bool { return slices.Equal(reported(), want) })
	within(t, "it is not asked about any more", func() bool { return len(d.followedCalls()) == 0 })
}

func TestACallOfBeforeGoesOn(t *testing.T) {
	k := newKazoo(t, loginAs("t1"), channelOf(404, `{}`), historyOf(`not json`))
	d := k.newDriver()
	reported := collectReports(t, d, origination.Open{Order: order("c1"), CallID: "o1", State: origination.Bridged})
	within(t, "it has ended",
		func() bool { return slices.Equal(reported(), []string{"o1 ended " + origination.CauseUnknown}) })
}

func TestCancel(t *testing.T) {
	t.Run("a call that is there", func(t *testing.T) {
		k := newKazoo(t, loginAs("t1"), connectedAs("c1", 202, `{"data":{"call_id":"o1"}}`), hangUpIt)
		d := k.newDriver()
		if _, err := d.Originate(t.Context(), order("c1")); err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "o1"); err != nil {
			t.Fatal(err)
		}

		k.expect(channelOf(200, `{"data":{}}`), hangUpIt, channelOf(404, `{}`))
		reported := collectReports(t, d)
		within(t, "it has ended",
			func() bool { return slices.Equal(reported(), []string{"o1 ended ORIGINATOR_CANCEL"}) })
	})

	t.Run("a call that has no channel yet", func(t *testing.T) {
		missing := hangUpIt
		missing.status = 404
		k := newKazoo(t, loginAs("t1"), connectedAs("c1", 202, `{"data":{"call_id":"o1"}}`), missing)
		d := k.newDriver()
		if _, err := d.Originate(t.Context(), order("c1")); err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "o1"); err != nil {
			t.Fatal(err)
		}

		k.expect(channelOf(404, `{}`), channelOf(200, `{"data":{}}`), hangUpIt, channelOf(404, `{}`))
		reported := collectReports(t, d)
		within(t, "it has ended",
			func() bool { return slices.Equal(reported(), []string{"o1 ended ORIGINATOR_CANCEL"}) })
	})

	t.Run("during a request of a poll", func(t *testing.T) {
		history, release := make(chan struct{}), make(chan struct{})
		k := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodPut:
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, `{"auth_token":"t1"}`)
			case strings.HasSuffix(r.URL.Path, "/history"):
				close(history)
				<-release
				_, _ = io.WriteString(w, `{"data":[{"call_id":"o1","cause":"NO_ANSWER"}]}`)
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		}))

		t.Cleanup(k.Close)
		d, err := New(Config{Settings: Settings{URL: k.URL, APIKey: "k"}, Timeout: time.Minute,
			PollEvery: 5 * time.Millisecond},
			k.Client(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}

		reported := collectReports(t, d, origination.Open{Order: order("c1"), CallID: "o1", State: origination.Bridged})
		<-history
		ctx, cancel := context.WithCancel(t.Context())
		cancel()

		err = d.Cancel(ctx, "o1") // the poll has locked the call
		close(release)
		if fault.KindOf(err) != fault.KindUnavailable || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}

		within(t, "it has ended", func() bool { return slices.Equal(reported(), []string{"o1 ended NO_ANSWER"}) })
	})

	t.Run("an unknown call", func(t *testing.T) {
		if err := newKazoo(t).newDriver().Cancel(t.Context(), "o2"); fault.KindOf(err) != fault.KindNotFound {
			t.Errorf("got %v", err)
		}
	})

	t.Run("refused", func(t *testing.T) {
		refused := hangUpIt
		refused.status = 403
		k := newKazoo(t, loginAs("t1"), connectedAs("c1", 202, `{"data":{"call_id":"o1"}}`), refused)
		d := k.newDriver()
		if _, err := d.Originate(t.Context(), order("c1")); err != nil {
			t.Fatal(err)
		}
		if err := d.Cancel(t.Context(), "o1"); fault.KindOf(err) != fault.KindRefused {
			t.Errorf("got %v", err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for name, settings := range map[string]Settings{
		"no url": {APIKey: "k"}, "no scheme": {URL: "kazoo:8443", APIKey: "k"},
		"a password":                 {URL: "https://u:p@kazoo", APIKey: "k"},
		"no key":                     {URL: "https://kazoo"},
		"an account without Kazoo's": {URL: "https://kazoo", APIKey: "k", Accounts: []string{"demo"}},
	} {
		if _, err := New(Config{Settings: settings}, http.DefaultClient, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func FuzzConnected(f *testing.F) {
	f.Add([]byte(`{"origination_call_id":"o","outbound_call_id":1,"call_id":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var c connectResponse
		if json.Unmarshal(body, &c) == nil {
			if id := c.id(); id != "" && !origination.ValidID(id) {
				t.Fatalf("%q", id)
			}
		}
	})
}
