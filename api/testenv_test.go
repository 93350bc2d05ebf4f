package api

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/control"
	"trunkline/fanout"
	"trunkline/format/registry"
	"trunkline/identity"
	"trunkline/ingest"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/recording"
	"trunkline/stats"
)

// env is the API over the real identity, ingest and normalizer, on SQLite, with
// a Kafka and an events channel that only remember. Whatever goes through do is
// held to openapi.yaml.
type env struct {
	t              testing.TB
	api            *API
	audit          *audit.Log
	identity       *identity.Service
	kafka          *fakeKafka
	broker         *kafka.Cluster // embedded: of the dead letters and the queues' configurations
	channel        *fakeChannel
	explain        *fakeExplain
	db             *sqldb.DB
	cdr            cdrTopic
	platform       *fakePlatform // of click to call
	ai             *fakeSessions
	recordings     *recording.Service
	recordingsDir  string
	log            *testservice.Log
	metricRegistry *prometheus.Registry
	clock          *clock
	handler        http.Handler // api, with every answer held to openapi.yaml
	masterKeys     *masterkey.Keyring
	key            string // API key of demo with the scopes ingest, read, recordings and calls
}

const password = "only for the tests 42"

// patience limits each wait for a condition: only a test that fails waits so long.
const patience = 3 * time.Minute

func newEnv(t testing.TB, change ...func(*Config, *Deps)) *env {
	t.Helper()
	return newEnvWith(t, identity.DefaultSettings(), change...)
}

func newEnvWith(t testing.TB, auth identity.Settings, change ...func(*Config, *Deps)) *env {
	t.Helper()
	e := &env{
		t: t, kafka: &fakeKafka{}, channel: &fakeChannel{status: fanout.StatusOK}, log: &testservice.Log{},
		metricRegistry: prometheus.NewRegistry(), clock: &clock{time: time.Now()},
	}
	log := slog.New(slog.NewTextHandler(e.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	db, err := sqldb.Open(t.Context(), sqldb.Config{Path: filepath.Join(t.TempDir(), "test.db")})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() })
	e.db = db
	cheap := identity.Config{Settings: auth, Argon2: identity.Argon2{MemoryKiB: 64, Passes: 1, Lanes: 1},
		Now: e.clock.Now}
	ring, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	must(t, err)
	_, err = ring.Create()
	must(t, err)
	e.masterKeys = ring
	e.audit, err = audit.New(t.Context(), audit.DefaultSettings(),
		audit.Deps{DB: db, Metrics: e.metricRegistry, Log: log})
	must(t, err)
	e.identity, err = identity.New(t.Context(), cheap, db, e.masterKeys, identity.NewMemoryLimiter(), e.audit,
		e.metricRegistry, log)
	must(t, err)
	e.seed()
	in, err := ingest.New(t.Context(), ingest.DefaultSettings(), ingest.Deps{
		Formats:  registry.Lookup,
		Accounts: accountsOf{e.identity.Directory},
		Producer: e.kafka, LogReader: e.kafka, DB: db,
	}, e.metricRegistry, log)
	must(t, err)
	config := Config{}
	deps := Deps{Auth: e.identity.Tokens, Accounts: e.identity.Directory,
		Portal: e.identity.Credentials, Sessions: e.identity.Tokens,
		Directory: e.identity.Directory, OTPs: e.identity.Credentials, Ingest: in, Channel: e.channel,
		ChannelLogins: e.identity.Credentials, ChannelTokens: e.identity.Tokens}
	e.addRecordings(&deps, e.addCallReports(&deps, log), log)
	e.addFigures(&deps, log)
	e.addQueueConfigs(&deps)
	e.addAI(&deps)
	e.addWebhooks(&deps)
	e.explain = newFakeExplain()
	deps.Explain = e.explain
	e.addCalls(&deps, log)
	deps.Control = noControl{}

	for _, f := range change {
		f(&config, &deps)
	}

	e.api, err = New(config, deps, e.metricRegistry, log)
	must(t, err)
	e.handler = readDescription(t).checked(t, e.api)

	return e
}

// seed creates the account demo, its sub-account sub, an unrelated account, and an API key of demo.
func (e *env) seed() {
	ctx := e.t.Context()
	_, err := e.identity.Directory.SeedDemo(ctx, password)
	must(e.t, err)
	_, err = e.identity.Directory.CreateAccount(ctx,
		identity.NewAccount{ID: "sub", Name: "sub", Domain: "sub.demo.local", Parent: "demo"})
	must(e.t, err)
	_, err = e.identity.Directory.CreateAccount(ctx,
		identity.NewAccount{ID: "stranger", Name: "stranger", Domain: "stranger.local"})
	must(e.t, err)
	e.key, _, err = e.identity.Directory.CreateAPIKey(ctx, identity.NewAPIKey{Account: "demo", Name: "test",
		Scopes: []identity.Scope{identity.ScopeIngest, identity.ScopeRead, identity.ScopeRecordings,
			identity.ScopeCalls}})
	must(e.t, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type header map[string]string

func (e *env) do(method, target string, h header, body string) *httptest.ResponseRecorder {
	e.t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for name, value := range h {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	e.handler.ServeHTTP(w, r)
	return w
}

// ask does a request and checks its status; into, when not nil, takes the body.
func (e *env) ask(status int, method, target string, h header, body string, into any) *httptest.ResponseRecorder {
	e.t.Helper()
	w := e.do(method, target, h, body)
	if w.Code != status {
		e.t.Fatalf("%s %s: %d %s, want %d", method, target, w.Code, w.Body, status)
	}
	if into != nil {
		must(e.t, json.Unmarshal(w.Body.Bytes(), into))
	}
	return w
}

func bearer(token string) header { return header{"Authorization": "Bearer " + token} }

func loginBody(user string) string {
	return `{"username":"` + user + `","password":"` + password + `","domain":"demo.local"}`
}

func (e *env) loginUser(user string) (s sessionView) {
	e.t.Helper()
	e.ask(200, "POST", "/ucp/v2/login", nil, loginBody(user), &s)
	return s
}

func (e *env) eventsToken(user string) string {
	e.t.Helper()
	var s sessionView
	e.ask(200, "POST", channelPrefix+"/login", nil, loginBody(user), &s)
	return s.AccessToken
}

type accountsOf struct{ directory *identity.Directory }

func (a accountsOf) MayIngestFor(p *identity.Principal, account string) bool {
	return a.directory.Tree().Contains(p.AccountID, account)
}

type fakeKafka struct {
	mu      sync.Mutex
	records []kafka.Record
	err     error
}

func (k *fakeKafka) Produce(_ context.Context, records ...kafka.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.records = append(k.records, records...)
	}
	return k.err
}

// KeyPartition implements ingest.Log: the topics are one partition.
func (k *fakeKafka) KeyPartition(context.Context, string, []byte) (int, error) { return 0, nil }

// OffsetAt implements ingest.Log: every time is the beginning, and the end.
func (k *fakeKafka) OffsetAt(context.Context, string, int, time.Time) (int64, error) { return 0, nil }

// Scan implements ingest.Log: a Produce that fails has stored nothing.
func (k *fakeKafka) Scan(context.Context, string, int, int64, int64, func(*kafka.Record)) error {
	return nil
}

// fakeChannel records its requests and answers with a configured response.
type fakeChannel struct {
	requests []fanout.Request // all so far
	refuse   error            // answers every request, unless nil
	status   fanout.Status    // status and total: Health's answer
	total    int
	clients  []fanout.Client     // Stats' answer
	current  *fanout.Snapshot    // Snapshot's answer
	caller   *identity.Principal // who asked last for Stats or Snapshot
}

func (f *fakeChannel) ServeWebSocket(w http.ResponseWriter, r fanout.Request) error {
	f.requests = append(f.requests, r)
	if f.refuse != nil {
		return f.refuse
	}

	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}

	_, err = io.WriteString(conn,
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")
	_ = conn.Close()

	return err
}

func (f *fakeChannel) ServeEventStream(w http.ResponseWriter, r fanout.Request) error {
	f.requests = append(f.requests, r)
	if f.refuse != nil {
		return f.refuse
	}

	w.Header().Set("Content-Type", "text/event-stream")
	_, err := io.WriteString(w, "data: {}\n\n")
	if err != nil {
		return err
	}

	return http.NewResponseController(w).Flush()
}

func (f *fakeChannel) Health(context.Context) (fanout.Status, int) { return f.status, f.total }

func (f *fakeChannel) Stats(_ context.Context, p *identity.Principal) []fanout.Client {
	f.caller = p
	return f.clients
}

func (f *fakeChannel) Snapshot(_ context.Context, p *identity.Principal) (*fanout.Snapshot, error) {
	f.caller = p
	return f.current, f.refuse
}

// clock is a clock that can be put forward.
type clock struct {
	mu   sync.Mutex
	time time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.time
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.time = c.time.Add(d)
}

// through passes one request through the API's middleware to handle.
func (e *env) through(r *http.Request, handle echo.HandlerFunc) *httptest.ResponseRecorder {
	e.t.Helper()
	e.api.echo.Add(r.Method, r.URL.Path, handle)
	w := httptest.NewRecorder()
	e.api.ServeHTTP(w, r)
	return w
}

func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came true")
		}
	}
}

// as returns a request's headers: the user's portal token, and the account.
func (e *env) as(user, account string) header {
	h := bearer(e.loginUser(user).AccessToken)
	h["X-Account-ID"] = account
	return h
}

func withHeader(h header, name, value string) header {
	more := header{name: value}
	for n, v := range h {
		if n != name {
			more[n] = v
		}
	}
	return more
}

// userWith creates a user of an account with a role and returns a header with its token.
func (e *env) userWith(name, account string, role identity.Role, extension string, limits identity.Limits) header {
	e.t.Helper()
	_, err := e.identity.Directory.CreateUser(e.t.Context(), identity.NewUser{
		Account: account, Username: name, Password: password, Role: role, PresenceID: extension, Limits: limits,
	})
	must(e.t, err)
	found, _ := e.identity.Directory.Tree().Account(account)
	var s sessionView
	e.ask(200, "POST", "/ucp/v2/login", nil,
		fmt.Sprintf(`{"username":%q,"password":%q,"domain":%q}`, name, password, found.Domain), &s)

	return bearer(s.AccessToken)
}

// membersByQueue is a Roster with one queue's members.
type membersByQueue map[string][]string

func (r membersByQueue) AgentsIn(_ context.Context, _ string, queues []string) (agents []string, err error) {
	for _, queue := range queues {
		agents = append(agents, r[queue]...)
	}
	return agents, nil
}

// noControl has no agents and no calls.
type noControl struct{}

func (noControl) Act(context.Context, control.Request) (string, error) {
	return "", fault.NotFound("Agent not found")
}

func (noControl) Find(context.Context, *identity.Principal, string) (*control.Status, error) {
	return nil, fault.NotFound("Action not found")
}

// addQueueConfigs adds the real configurations over an embedded broker.
func (e *env) addQueueConfigs(deps *Deps) {
	e.t.Helper()
	c := kafkatest.OpenEmbedded(e.t, 1)
	p := c.NewProducer(kafka.ProducerConfig{})
	e.t.Cleanup(func() { _ = p.Close(e.t.Context()) })
	configs := stats.NewQueueConfigs(c, p)
	deps.QueueConfigs, deps.AlertConfigs, deps.Audit = configs, configs, e.audit
	e.addDeadLetters(deps, c, p)
}
