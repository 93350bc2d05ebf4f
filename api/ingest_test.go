package api

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"

	"trunkline/ingest"
)

var _ Ingest = (*ingest.Ingest)(nil)

// keyHeader is of a request with the account demo's API key.
func (e *env) keyHeader(contentType string) header {
	h := header{"X-API-Key": e.key}
	if contentType != "" {
		h["Content-Type"] = contentType
	}
	return h
}

func TestIngestEveryWayIn(t *testing.T) {
	e := newEnv(t)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, err := w.Write([]byte(`[{"type":"AGENT_LOGIN"},{"type":"AGENT_LOGOUT"}]`))
	must(t, err)
	must(t, w.Close())
	gz := e.keyHeader("application/json")

	gz["Content-Encoding"] = "gzip"
	const cdr = `{"variables":{"uuid":"u1"}}`
	for _, tc := range []struct {
		name, target string
		header       header
		body         string
		want         int
		topic, value string
	}{
		{"an object", "generic", e.keyHeader(""), `{"type":"AGENT_LOGIN"}`, 1, "cc.raw", `{"type":"AGENT_LOGIN"}`},
		{"an array", "svc.cc", e.keyHeader("application/json"), ` [{ "Type":"x" }]`, 1, "cc.raw", `{ "Type":"x" }`},
		{"nothing", "svc.cc", e.keyHeader("application/json"), `[]`, 0, "", ""},
		{"lines", "generic", e.keyHeader("application/x-ndjson"), "{\"a\":1}\n{\"b\":2}", 2, "cc.raw", `{"b":2}`},
		{"gzip", "generic", gz, zipped.String(), 2, "cc.raw", `{"type":"AGENT_LOGOUT"}`},
		{"plain events", "freeswitch.event", e.keyHeader("text/event-plain"), "Event-Name: HEARTBEAT\nUp: 1%202\n\n", 1,
			"cc.raw", `{"Event-Name":"HEARTBEAT","Up":"1 2"}`},
		{"a call record form", "freeswitch.json_cdr?uuid=u1", e.keyHeader("application/x-www-form-urlencoded"),
			"cdr=" + url.QueryEscape(cdr), 1, "cdr.raw", cdr},
		{"a base64 form", "freeswitch.json_cdr?uuid=a_u1", e.keyHeader("application/x-www-form-base64-encoded"),
			"cdr=" + base64.StdEncoding.EncodeToString([]byte(cdr)), 1, "cdr.raw", cdr},
		{"JSON under curl's own Content-Type", "freeswitch.json_cdr?uuid=u1",
			e.keyHeader("application/x-www-form-urlencoded"), cdr, 1, "cdr.raw", cdr},
		{"the key as a password", "svc.cdr",
			header{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("any:"+e.key))}, `{}`, 1,
			"cdr.raw", `{}`},
		{"a record of a sub-account", "generic", e.keyHeader(""), `{"account_id":"sub"}`, 1, "cc.raw",
			`{"account_id":"sub"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e.kafka.records = nil
			var got struct{ Accepted int }
			e.ask(202, "POST", "/api/v2/ingest/"+tc.target, tc.header, tc.body, &got)

			if got.Accepted != tc.want || len(e.kafka.records) != tc.want {
				t.Fatalf("accepted %d, stored %d", got.Accepted, len(e.kafka.records))
			}
			if tc.want == 0 {
				return
			}

			last := e.kafka.records[tc.want-1]
			if last.Topic != tc.topic || string(last.Value) != tc.value ||
				!strings.HasPrefix(string(last.Header("source")), "apikey:") {
				t.Errorf("%s %s %s", last.Topic, last.Value, last.Header("source"))
			}
		})
	}
}

func TestIngestIdempotencyKey(t *testing.T) {
	e := newEnv(t)
	h := e.keyHeader("")
	h["Idempotency-Key"] = "k-1"
	var got struct{ Accepted int }
	if w := e.ask(202, "POST", "/api/v2/ingest/generic", h, `[{},{}]`, &got); got.Accepted != 2 ||
		w.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("%+v %v", got, w.Header())
	}

	got.Accepted = 0
	if w := e.ask(202, "POST", "/api/v2/ingest/generic", h, `[{},{}]`, &got); got.Accepted != 2 ||
		w.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("%+v %v", got, w.Header())
	}

	e.ask(409, "POST", "/api/v2/ingest/generic", h, `[{}]`, nil)
	h["Idempotency-Key"] = "k 1"
	e.ask(400, "POST", "/api/v2/ingest/generic", h, `[{},{}]`, nil)

	if len(e.kafka.records) != 2 {
		t.Errorf("%d records", len(e.kafka.records))
	}
}

func TestIngestRefusals(t *testing.T) {
	e := newEnv(t)
	token := e.loginUser("admin").AccessToken

	keyAndToken := e.keyHeader("")
	keyAndToken["Authorization"] = "Bearer " + token
	for _, tc := range []struct {
		name, format string
		header       header
		body         string
		want         int
	}{
		{"no key", "generic", nil, `{}`, 401},
		{"a wrong key", "generic", header{"X-API-Key": "wrong"}, `{}`, 401},
		{"a wrong password", "generic", header{"Authorization": "Basic eDp5"}, `{}`, 401},
		{"a token", "generic", bearer(token), `{}`, 401},
		{"a token as key", "generic", header{"X-API-Key": token}, `{}`, 401},
		{"SQL as key", "generic", header{"X-API-Key": "' OR '1'='1"}, `{}`, 401},
		{"both", "generic", keyAndToken, `{}`, 401},
		{"an unknown format", "nope", e.keyHeader(""), `{}`, 404},
		{"our own format", "trunkline.event", e.keyHeader(""), `{}`, 404},
		{"a format with a slash", "generic%2F", e.keyHeader(""), `{}`, 404},
		{"not JSON", "generic", e.keyHeader(""), `{`, 400},
		{"empty", "generic", e.keyHeader(""), ``, 400},
		{"another account", "generic", e.keyHeader(""), `[{},{"account_id":"stranger"}]`, 403},
		{"an account that is not", "generic", e.keyHeader(""), `{"account_id":"' OR 1=1"}`, 403},
		{"another type", "generic", e.keyHeader("text/event-plain"), `A: b`, 415},
		{"a record of 2 MiB", "generic", e.keyHeader(""), `{"a":"` + strings.Repeat("x", 2<<20) + `"}`, 413},
		{"a body of 40 MiB", "generic", e.keyHeader(""), strings.Repeat(" ", 40<<20), 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e.ask(tc.want, "POST", "/api/v2/ingest/"+tc.format, tc.header, tc.body, nil)
		})
	}

	e.kafka.err = errors.New("away")
	var got failure
	w := e.ask(503, "POST", "/api/v2/ingest/generic", e.keyHeader(""), `{}`, &got)
	if w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(got.Message, "none, some or all of its records may be stored") {
		t.Errorf("%v %+v", w.Header(), got)
	}
	if len(e.kafka.records) != 0 {
		t.Errorf("stored %d records of refused bodies", len(e.kafka.records))
	}
}
