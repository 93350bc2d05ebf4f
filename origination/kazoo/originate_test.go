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

	"trunkline/internal/fault"
	"trunkline/origination"
)

func TestOriginate(t *testing.T) {
	const accepted = `{"data":{"origination_call_id":"o1","outbound_call_id":"b1","call_id":"l1"}}`
	for name, c := range map[string]struct {
		resource string
		script   []exchange
		want     origination.Placed
		kind     fault.Kind
	}{
		"a first call provisions": {"",
			[]exchange{loginExchange("t1"), provisionExchange("c1"), connectExchange("c1", 202, accepted)},
			origination.Placed{CallID: "o1", ClickToCallID: "c1"}, ""},
		"a later one does not": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 202, accepted)},
			origination.Placed{CallID: "o1"}, ""},
		"the outbound id is the next best": {"c1",
			[]exchange{loginExchange("t1"),
				connectExchange("c1", 202, `{"data":{"origination_call_id":"","outbound_call_id":"b1","call_id":"l1"}}`)},
			origination.Placed{CallID: "b1"}, ""},
		"then the call's": {"c1",
			[]exchange{loginExchange("t1"), connectExchange("c1", 200, `{"data":{"origination_call_id":7,"call_id":"l1"}}`)},
			origination.Placed{CallID: "l1"}, ""},
		"an answer without an id": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 202, `{"data":{}}`)},
			origination.Placed{}, ""},
		"an answer without data": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 202, `{}`)},
			origination.Placed{}, ""},
		"an answer that is not JSON": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 202, `<html>`)},
			origination.Placed{}, ""},
		"an empty answer": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 202, ``)},
			origination.Placed{}, ""},
		"data of another shape": {"c1",
			[]exchange{loginExchange("t1"), connectExchange("c1", 202, `{"data":"success"}`)},
			origination.Placed{}, ""},
		"an id that cannot be one": {"c1",
			[]exchange{loginExchange("t1"), connectExchange("c1", 202, `{"data":{"call_id":"a b"}}`)},
			origination.Placed{}, ""},
		"a deleted resource": {"c1",
			[]exchange{loginExchange("t1"), connectExchange("c1", 404, `{}`), provisionExchange("c2"),
				connectExchange("c2", 202, accepted)}, origination.Placed{CallID: "o1", ClickToCallID: "c2"}, ""},
		"deleted again": {"c1",
			[]exchange{loginExchange("t1"), connectExchange("c1", 404, `{}`), provisionExchange("c2"),
				connectExchange("c2", 404, `{}`)},
			origination.Placed{ClickToCallID: "c2"}, fault.KindRefused},
		"a new one that is not there": {"",
			[]exchange{loginExchange("t1"), provisionExchange("c1"), connectExchange("c1", 404, `{}`)},
			origination.Placed{ClickToCallID: "c1"}, fault.KindRefused},
		"refused": {"c1",
			[]exchange{loginExchange("t1"), connectExchange("c1", 400, `{"message":"not in whitelist"}`)},
			origination.Placed{}, fault.KindRefused},
		"provisioning refused": {"",
			[]exchange{loginExchange("t1"),
				{"PUT", "/v2/accounts/kz1/clicktocall", provisionExchange("").data, "t1", 400, `{}`}},
			origination.Placed{}, fault.KindRefused},
		"provisioned without an id": {"", []exchange{loginExchange("t1"), provisionExchange("")}, origination.Placed{},
			fault.KindRefused},
		"broken": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 500, `{}`)},
			origination.Placed{}, fault.KindUnavailable},
		"too much": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 429, `{}`)},
			origination.Placed{}, fault.KindUnavailable},
		"sent elsewhere": {"c1", []exchange{loginExchange("t1"), connectExchange("c1", 307, ``)},
			origination.Placed{}, fault.KindRefused},
		"a wrong key": {"c1", []exchange{{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 401, `{}`}},
			origination.Placed{},
			fault.KindRefused},
		"a login without a token": {"c1", []exchange{{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 201, `{}`}},
			origination.Placed{},
			fault.KindRefused},
		"a login that is not JSON": {"c1",
			[]exchange{{"PUT", "/v2/api_auth", `{"api_key":"the key"}`, "", 201, `<html>`}}, origination.Placed{},
			fault.KindUnavailable},
		"an old token is replaced": {"c1",
			[]exchange{loginExchange("t0"), withOldToken(connectExchange("c1", 401, `{}`)), loginExchange("t1"),
				connectExchange("c1", 202, accepted)},
			origination.Placed{CallID: "o1"}, ""},
		"a new one is not": {"c1",
			[]exchange{loginExchange("t0"), withOldToken(connectExchange("c1", 401, `{}`)), loginExchange("t1"),
				connectExchange("c1", 401, `{}`)},
			origination.Placed{}, fault.KindRefused},
	} {
		t.Run(name, func(t *testing.T) {
			placed, err := newScriptedCrossbar(t, c.script...).newDriver().Originate(t.Context(), order(c.resource))
			if placed != c.want || fault.KindOf(err) != c.kind {
				t.Errorf("got %+v, %v", placed, err)
			}
		})
	}
}

func withOldToken(e exchange) exchange { e.token = "t0"; return e }

func TestATokenIsAskedForOnce(t *testing.T) {
	k := newScriptedCrossbar(t, loginExchange("t1"))
	for range 10 {
		k.expect(connectExchange("c1", 202, `{}`))
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
	k := newScriptedCrossbar(t)
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
