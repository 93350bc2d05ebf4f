package api

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit/audittest"
	"trunkline/config/aiprovider"
	"trunkline/internal/aiprotocol"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

const providerBody = `{"name":"Receptionist","media":{"audioFormat":"pcm16","sampleRate":24000},` +
	`"websocket":{"url":"wss://ai.example.com/voice","headers":{"Authorization":"Bearer sesame"}},"extensions":false,"fallback":"return"}`

func (e *env) createProvider(h header) aiprovider.Document {
	e.t.Helper()
	var made aiprovider.Document
	e.ask(201, "POST", aiProvidersPath, h, providerBody, &made)
	return made
}

func TestAProvidersLifeOverHTTP(t *testing.T) {
	e := newEnv(t)
	h := e.as("admin", "demo")
	w := e.ask(201, "POST", aiProvidersPath, h, providerBody, nil)
	location := w.Header().Get("Location")
	id := strings.TrimPrefix(location, aiProvidersPath+"/")
	want := `{"id":"` + id + `",` + strings.Replace(providerBody, "Bearer sesame", "********", 1)[1:]
	if w.Body.String() != want {
		t.Errorf("POST answers %s, want %s", w.Body, want)
	}
	if got := e.ask(200, "GET", location, h, "", nil).Body.String(); got != want {
		t.Errorf("GET answers %s", got)
	}
	if got := e.ask(200, "GET", aiProvidersPath, h, "", nil).Body.String(); got != `{"data":[`+want+`]}` {
		t.Errorf("the list is %s", got)
	}

	next := strings.Replace(want, `,"extensions":false,"fallback":"return"`, ``, 1)
	if got := e.ask(200, "PUT", location, h, next, nil).Body.String(); got != next {
		t.Errorf("PUT answers %s", got)
	}

	e.ask(200, "POST", location+"/test", h, "", nil)
	if p := e.ai.tested[0]; p.Headers["Authorization"] != "Bearer sesame" || p.Format.Encoding != aiprotocol.PCM16 {
		t.Errorf("the mask did not keep the value: %v", p)
	}

	moved := strings.Replace(next, "ai.example.com", "thief.example.com", 1)
	if got := e.ask(400, "PUT", location, h, moved, nil).Body.String(); !strings.Contains(got,
		`"field":"websocket.headers.Authorization","code":"masked"`) {
		t.Errorf("a PUT with the mask and another host answers %s", got)
	}

	e.ask(204, "DELETE", location, h, "", nil)
	for _, method := range []string{"GET", "DELETE"} {
		e.ask(404, method, location, h, "", nil)
	}

	e.ask(404, "PUT", location, h, providerBody, nil)
	e.ask(404, "POST", location+"/test", h, "", nil)
	if got := e.ask(200, "GET", aiProvidersPath, h, "", nil).Body.String(); got != `{"data":[]}` {
		t.Errorf("the list is %s", got)
	}
	if strings.Contains(e.log.String(), "sesame") {
		t.Error("a header's value is in the log")
	}
}

// Without parameters the list is whole; a page has the parameters' names.
func TestPagesOfProviders(t *testing.T) {
	e := newEnv(t)
	h := e.as("admin", "demo")
	for _, name := range []string{"Zoe", "Ada", "Bot"} {
		e.ask(201, "POST", aiProvidersPath, h, strings.Replace(providerBody, `"name":"`, `"name":"`+name+" ", 1), nil)
	}

	names := func(query string) (found, next string) {
		t.Helper()
		var page struct {
			Data         []struct{ Name string }
			PageSize     int    `json:"page_size"`
			NextStartKey string `json:"next_start_key"`
		}
		e.ask(200, "GET", aiProvidersPath+query, h, "", &page)

		if (query == "") != (page.PageSize == 0) {
			t.Errorf("%q answers page_size %d", query, page.PageSize)
		}

		for _, p := range page.Data {
			found += strings.Fields(p.Name)[0] + " "
		}

		return found, page.NextStartKey
	}
	if all, _ := names(""); all != "Zoe Ada Bot " {
		t.Errorf("the list is %s", all)
	}

	first, next := names("?page_size=2")
	second, last := names("?page_size=2&start_key=" + next)
	if first != "Ada Bot " || second != "Zoe " || last != "" {
		t.Errorf("pages %q, %q", first, second)
	}
	if found, _ := names("?search=BOT%20"); found != "Bot " {
		t.Errorf("the search finds %q", found)
	}

	e.ask(400, "GET", aiProvidersPath+"?page_size=x", h, "", nil)
}

func TestWhoMayChangeProviders(t *testing.T) {
	e := newEnv(t)
	made := e.createProvider(e.as("admin", "demo"))
	one := aiProvidersPath + "/" + made.ID
	alice := bearer(e.loginUser("alice").AccessToken)
	alice["X-Account-ID"] = "demo"

	for _, request := range [][3]string{
		{"GET", aiProvidersPath}, {"POST", aiProvidersPath, providerBody}, {"GET", one}, {"PUT", one, providerBody},
		{"DELETE", one}, {"POST", one + "/test"},
	} {
		method, path, body := request[0], request[1], request[2]
		w := e.ask(400, method, path, bearer(e.loginUser("admin").AccessToken), body, nil)
		if !strings.Contains(w.Body.String(), "Could not get account ID from context") {
			t.Errorf("%s %s: %s", method, path, w.Body)
		}

		e.ask(401, method, path, header{"X-Account-ID": "demo"}, body, nil)
		e.ask(401, method, path, header{"X-Account-ID": "demo", "Authorization": "Bearer x.y.z"}, body, nil)
		e.ask(401, method, path, header{"X-Account-ID": "demo", "X-API-Key": e.key}, body, nil)
		e.ask(403, method, path, header{"X-Account-ID": "demo", "Authorization": "Bearer " + e.eventsToken("admin")},
			body, nil)
		e.ask(403, method, path, alice, body, nil)
		e.ask(404, method, path, e.as("admin", "stranger"), body, nil)
		e.ask(404, method, path, e.as("admin", "nobody"), body, nil)
	}

	sub := e.as("admin", "sub")
	for _, request := range [][3]string{{"GET", one}, {"PUT", one, providerBody}, {"DELETE", one},
		{"POST", one + "/test"}} {
		e.ask(404, request[0], request[1], sub, request[2], nil)
	}

	if theirs := e.createProvider(sub); theirs.ID == made.ID {
		t.Error("two providers have one id")
	}
}

func TestProvidersBodiesAreReadStrictly(t *testing.T) {
	e := newEnv(t)
	h := e.as("admin", "demo")
	for body, want := range map[string]string{
		`[]`:                      `The body must be a JSON object`,
		`{"name":"a","name":"b"}`: `"field":"name","code":"repeated"`,
		`{"name":null}`:           `"field":"name","code":"wrong_type"`,
		strings.Replace(providerBody, `24000`, `"24000"`,
			1): `"field":"media.sampleRate","code":"wrong_type"`,
		strings.Replace(providerBody, `24000`, `8000`,
			1): `"field":"media.sampleRate","code":"mismatch"`,
		strings.Replace(providerBody, `wss:`, `ws:`,
			1): `"field":"websocket.url","code":"unsupported"`,
		strings.Replace(providerBody, `"Authorization"`, `"Host"`,
			1): `"field":"websocket.headers.Host","code":"reserved"`,
		strings.Replace(providerBody, `"Bearer sesame"`, `7`,
			1): `"field":"websocket.headers.Authorization","code":"wrong_type"`,
		strings.Replace(providerBody, `Bearer sesame`, `********`,
			1): `"field":"websocket.headers.Authorization","code":"masked"`,
		strings.Replace(providerBody, `"sampleRate"`, `"sampleRate":1,"x"`, 1): `"field":"media.x","code":"unknown"`,
	} {
		w := e.ask(400, "POST", aiProvidersPath, h, body, nil)
		if !strings.Contains(w.Body.String(), want) || strings.Contains(w.Body.String(), "sesame") {
			t.Errorf("%s\nanswers %s", body, w.Body)
		}
	}

	form := maps.Clone(h)
	form["Content-Type"] = "text/plain"
	e.ask(415, "POST", aiProvidersPath, form, providerBody, nil)
	e.ask(413, "POST", aiProvidersPath, h, `{"name":"`+strings.Repeat("x", 1<<20)+`"}`, nil)
}

func TestAProvidersTestTellsWhatHappened(t *testing.T) {
	e := newEnv(t)
	h := e.as("admin", "demo")
	path := aiProvidersPath + "/" + e.createProvider(h).ID + "/test"
	if got := e.ask(200, "POST", path, h, "", nil).Body.String(); got != `{"ok":true,"connect_ms":12.5,"events":[]}` {
		t.Errorf("got %s", got)
	}

	e.ai.report = aiprovider.TestReport{ConnectMS: 3, Events: []string{"start", "media"}, Error: "the provider closed"}
	if got := e.ask(200, "POST", path, h, "",
		nil).Body.String(); got != `{"ok":false,"connect_ms":3,"events":["start","media"],"error":"the provider closed"}` {
		t.Errorf("got %s", got)
	}

	e.ai.refuse = fault.Unavailable(nil, 0, "draining")
	e.ask(503, "POST", path, h, "", nil)
}

func TestProvidersWithoutAMasterKey(t *testing.T) {
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	must(t, err)
	defer db.Close()

	none, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	must(t, err)
	providers, err := aiprovider.New(t.Context(), aiprovider.Settings{}, db, none, audittest.New(t, db),
		prometheus.NewRegistry())
	must(t, err)
	e := newEnv(t, func(_ *Config, d *Deps) { d.AIProviders = providers })
	h := e.as("admin", "demo")
	e.ask(503, "POST", aiProvidersPath, h, providerBody, nil)
	e.ask(201, "POST", aiProvidersPath, h,
		strings.Replace(providerBody, `,"headers":{"Authorization":"Bearer sesame"}`, ``, 1), nil)
}

func TestRoutesOfAIExistOnlyWithTheirServices(t *testing.T) {
	e := newEnv(t, func(_ *Config, d *Deps) { d.AITester, d.AIAnnouncer, d.AIMedia = nil, nil, nil })
	for _, r := range e.api.echo.Routes() {
		if strings.HasPrefix(r.Path, "/media") || r.Path == aiProvidersPath+"/:id/test" ||
			strings.Contains(r.Path, "ai_sessions") {
			t.Errorf("%s %s leads nowhere", r.Method, r.Path)
		}
	}

	if _, err := New(Config{}, Deps{Auth: e.identity.Tokens, Accounts: e.identity.Directory, AIMedia: e.ai}, nil,
		nil); err == nil {
		t.Error("a socket without providers is accepted")
	}
}
