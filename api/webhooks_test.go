package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/webhook"
)

// addWebhooks adds the real webhooks, on a topic of one partition without events.
func (e *env) addWebhooks(deps *Deps) {
	e.t.Helper()
	webhooks, err := webhook.New(e.t.Context(), webhook.DefaultSettings(), webhook.Deps{
		DB: e.db, Keys: e.masterKeys, Audit: e.audit, Filters: e.identity.Directory, LogReader: kafkatest.NewLog(1),
	})
	must(e.t, err)
	deps.Webhooks = webhooks
}

const webhookBody = `{"url":"https://crm.example.com/hook","filters":{"queue_ids":["sales"],"names":["queue.*"]},"format":"cloudevents"}`

func TestAWebhooksLifeOverHTTP(t *testing.T) {
	e := newEnv(t)
	h := e.as("admin", "demo")
	var made, got webhookView
	w := e.ask(201, "POST", webhooksPath, h, webhookBody, &made)
	one := webhooksPath + "/" + made.ID
	if w.Header().Get("Location") != one || w.Header().Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(made.Secret, "whsec_") ||
		made.AccountID != "demo" || made.Format != webhook.FormatCloudEvents || made.Filters.QueueIDs[0] != "sales" ||
		made.Status != webhook.StatusActive {
		t.Errorf("POST answers %s", w.Body)
	}

	tag := w.Header().Get("ETag")
	for _, method := range []string{"GET", "PUT"} {
		got = webhookView{}
		w := e.ask(200, method, one, withHeader(h, "If-Match", tag),
			map[string]string{"PUT": `{"url":"https://crm.example.com/other"}`}[method], &got)
		if strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s shows the secret: %s", method, w.Body)
		}
	}

	for method, body := range map[string]string{"PUT": webhookBody, "DELETE": ""} {
		e.ask(412, method, one, withHeader(h, "If-Match", tag), body, nil)
	}

	whole := e.ask(200, "GET", one, h, "", nil).Body.String()
	// meanwhile a delivery failed
	whole = strings.Replace(whole, `"failures":0`,
		`"failures":3,"last_error":"x","failed_at":1,"next_try_at":2,"paused_at":3`, 1)
	e.ask(200, "PUT", one, h, whole, &got)

	for _, sent := range []string{`"id":"` + made.ID + `1"`, `"account_id":"sub"`, `"created_at":1`} {
		w := e.ask(400, "PUT", one, h, `{"url":"https://crm.example.com/other",`+sent+`}`, nil)
		if !strings.Contains(w.Body.String(), `"code":"read_only"`) {
			t.Errorf("%s: %s", sent, w.Body)
		}
	}

	if got.URL != "https://crm.example.com/other" || got.Format != webhook.FormatTrunkline ||
		len(got.Filters.QueueIDs) != 0 {
		t.Errorf("PUT answers %+v", got)
	}

	key := header{"X-API-Key": e.keyWith(identity.ScopeAdmin)} // without X-Account-ID its own account
	if list := e.ask(200, "GET", webhooksPath, key, "", nil).Body.String(); !strings.Contains(list, made.ID) ||
		strings.Contains(list, "secret") {
		t.Errorf("listed: %s", list)
	}

	e.ask(200, "POST", one+"/retry", h, "", &got)
	e.ask(200, "POST", one+"/retry", h, "{}", &got)
	e.ask(400, "POST", one+"/retry", h, `{"since":"yesterday"}`, nil)
	e.ask(400, "POST", one+"/retry", h, `{"from":"x"}`, nil)
	e.ask(410, "POST", one+"/retry", h, `{"since":"`+event.FirstID(time.Now(), 0).String()+`"}`, nil)
	tag = e.ask(200, "GET", one, h, "", nil).Header().Get("ETag")
	e.ask(204, "DELETE", one, withHeader(h, "If-Match", tag), "", nil)

	for _, request := range [][3]string{{"GET", one}, {"PUT", one, webhookBody}, {"DELETE", one},
		{"POST", one + "/retry"}} {
		e.ask(404, request[0], request[1], h, request[2], nil)
	}

	if strings.Contains(e.log.String(), "whsec_") {
		t.Error("a secret is in the log")
	}
}

func TestWhoMayChangeWebhooks(t *testing.T) {
	e := newEnv(t)
	var made webhookView
	e.ask(201, "POST", webhooksPath, e.as("admin", "demo"), webhookBody, &made)

	one := webhooksPath + "/" + made.ID
	for _, request := range [][3]string{
		{"GET", webhooksPath}, {"POST", webhooksPath, webhookBody}, {"GET", one}, {"PUT", one, webhookBody},
		{"DELETE", one}, {"POST", one + "/retry"},
	} {
		method, path, body := request[0], request[1], request[2]
		e.ask(401, method, path, nil, body, nil)
		e.ask(401, method, path, header{"Authorization": "Bearer x.y.z"}, body, nil)
		e.ask(403, method, path, header{"Authorization": "Bearer " + e.eventsToken("admin")}, body, nil)
		e.ask(403, method, path, bearer(e.loginUser("alice").AccessToken), body, nil)
		e.ask(403, method, path, header{"X-API-Key": e.keyWith(identity.ScopeRead)}, body, nil)
		e.ask(404, method, path, e.as("admin", "stranger"), body, nil)
		e.ask(404, method, path, e.as("admin", "nobody"), body, nil)

		if path != webhooksPath { // it is not that of a sub-account
			e.ask(404, method, path, e.as("admin", "sub"), body, nil)
		}
	}
}

func TestWebhooksBodiesAreReadStrictly(t *testing.T) {
	e := newEnv(t)
	h := e.as("admin", "demo")
	for body, want := range map[string]string{
		`{}`:                                     `"field":"url","code":"required"`,
		`{"url":null}`:                           `"field":"url","code":"wrong_type"`,
		`{"url":"http://a.com"}`:                 `"field":"url","code":"unsupported"`,
		`{"url":"https://a.com","format":"xml"}`: `"field":"format","code":"unsupported"`,
		`{"url":"https://a.com","secret":"whsec_AAAA"}`:                  `"field":"secret","code":"invalid"`,
		`{"url":"https://a.com","filters":{"queues":[]}}`:                `"field":"filters.queues","code":"unknown"`,
		`{"url":"https://a.com","filters":{"account_ids":["stranger"]}}`: `"field":"filters.account_ids[0]","code":"unknown_account"`,
		`{"url":"https://a.com","filters":{"names":["nothing"]}}`:        `"field":"filters.names[0]","code":"unknown_name"`,
		`{"url":"https://a.com","paused":true}`:                          `"field":"paused","code":"unknown"`,
	} {
		if w := e.ask(http.StatusBadRequest, "POST", webhooksPath, h, body, nil); !strings.Contains(w.Body.String(),
			want) || strings.Contains(w.Body.String(), "AAAA") {
			t.Errorf("%s\nanswers %s", body, w.Body)
		}
	}
}

// A key makes no webhook that gets more than the key's own channel tokens.
func TestAWebhookOfAKeyGetsNoTranscripts(t *testing.T) {
	e := newEnv(t)
	body := func(filters string) string {
		return `{"url":"https://crm.example.com/hook","filters":{"event_types":["AGENT_CUSTOM_EVENT"]` + filters + `}}`
	}
	admin, key := e.as("admin", "demo"), header{"X-API-Key": e.keyWith(identity.ScopeAdmin)}
	var made webhookView
	e.ask(201, "POST", webhooksPath, admin, body(""), &made)

	for _, filters := range []string{"", `,"names":["call.*"]`, `,"names":["recording.stored","call.transcript"]`} {
		e.ask(403, "POST", webhooksPath, key, body(filters), nil)
		e.ask(403, "PUT", webhooksPath+"/"+made.ID, key, body(filters), nil)
	}

	e.ask(201, "POST", webhooksPath, key, body(`,"names":["recording.stored"]`), nil)
	e.ask(201, "POST", webhooksPath, header{"X-API-Key": e.keyWith(identity.ScopeAdmin, identity.ScopeRecordings)},
		body(""), nil)
}
