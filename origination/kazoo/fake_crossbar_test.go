package kazoo

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"trunkline/origination"
)

// exchange is one request that the script expects, and the answer to it.
type exchange struct {
	method, uri string
	data        string // JSON of the body's data; "" for no body
	token       string
	status      int
	answer      string
}

// scriptedCrossbar is a Crossbar that is strict: anything but its script is a fault.
type scriptedCrossbar struct {
	*httptest.Server
	t      *testing.T
	mu     sync.Mutex
	script []exchange
}

func newScriptedCrossbar(t *testing.T, script ...exchange) *scriptedCrossbar {
	k := &scriptedCrossbar{t: t, script: script}
	k.Server = httptest.NewServer(http.HandlerFunc(k.serve))
	t.Cleanup(func() {
		k.Close()
		if len(k.script) > 0 && !t.Failed() {
			t.Errorf("not asked for: %+v", k.script)
		}
	})
	return k
}

func (k *scriptedCrossbar) serve(w http.ResponseWriter, r *http.Request) {
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

func (k *scriptedCrossbar) expect(script ...exchange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.script = append(k.script, script...)
}

func (k *scriptedCrossbar) newDriver() *Driver {
	k.t.Helper()
	d, err := New(Config{Settings: Settings{URL: k.URL + "/", APIKey: "the key", Accounts: []string{"demo=kz1"}},
		Timeout: 2 * time.Minute, PollEvery: 5 * time.Millisecond},
		k.Client(), slog.New(slog.DiscardHandler))
	if err != nil {
		k.t.Fatal(err)
	}
	return d
}

func loginExchange(token string) exchange {
	return exchange{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 201,
		`{"auth_token":"` + token + `","data":{"account_id":"kz0"}}`}
}

func provisionExchange(id string) exchange {
	return exchange{"PUT", "/v2/accounts/kz1/clicktocall",
		`{"name":"trunkline u1","extension":"1001","presence_id":"1001","dial_first":"extension","auth_required":true,"custom_sip_headers":{"svc_call_type":"clicktocall"}}`,
		"t1", 201, `{"data":{"id":"` + id + `"},"status":"success"}`}
}

func connectExchange(id string, status int, answer string) exchange {
	return exchange{"POST", "/v2/accounts/kz1/clicktocall/" + id + "/connect?contact=%2B43+1", `{"contact":"+43 1"}`,
		"t1", status, answer}
}

func channelExchange(status int, answer string) exchange {
	return exchange{"GET", "/v2/accounts/kz1/channels/o1", "", "t1", status, answer}
}

func historyExchange(answer string) exchange {
	return exchange{"GET", "/v2/accounts/kz1/clicktocall/c1/history", "", "t1", 200, answer}
}

var hangUpExchange = exchange{"POST", "/v2/accounts/kz1/channels/o1", `{"action":"hangup"}`, "t1", 200, `{}`}

func order(resource string) origination.Order {
	return origination.Order{ID: "ours", AccountID: "demo", UserID: "u1", Extension: "1001", Destination: "+43 1",
		ClickToCallID: resource}
}
