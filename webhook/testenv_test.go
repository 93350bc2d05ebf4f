package webhook

import (
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/audit/audittest"
	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
)

// memoryTopic is cc.evt in memory.
type memoryTopic struct {
	*kafkatest.Log
	mu     sync.Mutex
	lastID map[int]event.ID // by partition
}

// put appends an event and returns its id.
func (t *memoryTopic) put(partition int, account string, facts event.Facts, data string) event.ID {
	t.mu.Lock()
	defer t.mu.Unlock()

	_, next, _ := t.Offsets(context.Background(), event.TopicEvents, partition) // it has no error
	id := event.NextID(t.lastID[partition], 1_795_000_000_000+next, partition)
	m := event.Message{ID: id, Type: event.QueueCall, AccountID: account, Timestamp: 1_795_000_000, Data: []byte(data),
		Metadata: event.Metadata{Source: "test", OriginalFormat: "generic", ProcessedAt: 1_795_000_001, Facts: facts}}
	headers := []kafka.Header{{Key: event.HeaderType, Value: []byte(m.Type)},
		{Key: event.HeaderAccount, Value: []byte(account)},
		{Key: event.HeaderName, Value: []byte(facts.Name)}, {Key: event.HeaderQueue, Value: []byte(facts.QueueID)}}
	t.Append(kafka.Record{Topic: event.TopicEvents, Partition: partition, Time: time.UnixMilli(id.Milli()),
		Value: m.Append(nil), Headers: headers})
	t.lastID[partition] = id

	return id
}

// env is a service with accounts root, its children shop and kiosk, and stranger.
type env struct {
	t         *testing.T
	topic     *memoryTopic
	db        *sqldb.DB
	keys      *masterkey.Keyring
	audit     *audit.Log
	directory *identity.Directory
	service   *Service
	settings  Settings
	log       *testservice.Log
	roots     *x509.CertPool
}

// fastSettings returns settings with a back-off of milliseconds and with loopback among the
// allowed networks.
func fastSettings() Settings {
	s := DefaultSettings()
	s.AllowNetworks = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	s.FirstWait, s.LongestWait, s.Timeout = time.Millisecond, 4*time.Millisecond, time.Minute // a busy machine is slow
	return s
}

func newEnv(t *testing.T, at sqldb.Config, settings Settings, partitions int) *env {
	t.Helper()
	e := &env{t: t, settings: settings, log: &testservice.Log{},
		topic: &memoryTopic{Log: kafkatest.NewLog(partitions), lastID: map[int]event.ID{}},
		roots: x509.NewCertPool()}
	var err error
	e.db, err = sqldb.Open(t.Context(), at)
	must(t, err)
	t.Cleanup(func() { _ = e.db.Close() })
	e.keys, err = masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	must(t, err)
	_, err = e.keys.Create()
	must(t, err)
	e.audit = audittest.New(t, e.db)
	service, err := identity.New(t.Context(),
		identity.Config{Settings: identity.DefaultSettings(),
			Argon2: identity.Argon2{MemoryKiB: 64, Passes: 1, Lanes: 1}},
		e.db, e.keys, identity.NewMemoryLimiter(), e.audit, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	must(t, err)
	e.directory = service.Directory

	for _, a := range []identity.NewAccount{{ID: "root"}, {ID: "shop", Parent: "root"}, {ID: "kiosk", Parent: "root"},
		{ID: "stranger"}} {
		a.Name, a.Domain = a.ID, a.ID+".example"
		_, err := e.directory.CreateAccount(t.Context(), a)
		must(t, err)
	}

	e.service, err = New(t.Context(), settings,
		Deps{DB: e.db, Keys: e.keys, Audit: e.audit, Filters: e.directory, LogReader: e.topic, Version: "test",
			Roots: e.roots})
	must(t, err)

	return e
}

// deliver starts a node that delivers, until the test ends or stop is called.
func (e *env) deliver() (reg *prometheus.Registry, stop func()) {
	e.t.Helper()
	reg = prometheus.NewRegistry()
	d := NewDeliverer(e.service, DelivererConfig{Accounts: e.directory}, reg, slog.New(slog.NewTextHandler(e.log, nil)))

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = d.Run(ctx)
	}()

	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})

	e.t.Cleanup(stop)
	return reg, stop
}

// createWebhook makes a webhook of root, once the deliverers see it.
func (e *env) createWebhook(c Config) Webhook {
	e.t.Helper()
	made, _, err := e.service.Create(e.t.Context(), "root", c)
	must(e.t, err)
	return made
}

func (e *env) findWebhook(id string) Webhook {
	e.t.Helper()
	w, err := e.service.Find(e.t.Context(), "root", id)
	must(e.t, err)
	return w
}

// awaitStatus waits until the webhook has a status.
func (e *env) awaitStatus(id string, status Status) (w Webhook) {
	e.t.Helper()
	waitFor(e.t, fmt.Sprintf("webhook is %s", status), func() bool {
		w = e.findWebhook(id)
		return w.Status == status
	})
	return w
}

// receivedRequest is one request that a testReceiver got.
type receivedRequest struct {
	header http.Header
	body   string
	id     string // webhook-id
}

// testReceiver is an HTTP server that keeps the requests it gets.
type testReceiver struct {
	url string

	mu     sync.Mutex
	got    []receivedRequest
	handle http.HandlerFunc // nil: 204
}

// startReceiver starts a receiver with TLS that the deliverers trust.
func (e *env) startReceiver(handle http.HandlerFunc) *testReceiver {
	e.t.Helper()
	target := &testReceiver{handle: handle}
	server := httptest.NewUnstartedServer(target)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	e.t.Cleanup(server.Close)
	e.roots.AddCert(server.Certificate())
	target.url = server.URL
	return target
}

func (r *testReceiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return
	}

	r.mu.Lock()
	r.got = append(r.got, receivedRequest{request.Header.Clone(), string(body), request.Header.Get("webhook-id")})
	handle := r.handle
	r.mu.Unlock()

	if handle == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}

	handle(w, request)
}

// answer changes what the receiver does.
func (r *testReceiver) answer(handle http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handle = handle
}

func (r *testReceiver) requests() []receivedRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// ids returns the ids received, each once, in the order of their first request.
func (r *testReceiver) ids() (ids []string) {
	seen := map[string]bool{}
	for _, one := range r.requests() {
		if !seen[one.id] {
			seen[one.id], ids = true, append(ids, one.id)
		}
	}
	return ids
}

// await waits until all events were received and checks their order: of each
// partition, as all are put in order of their ids.
func (r *testReceiver) await(t *testing.T, want []event.ID) {
	t.Helper()
	var got []string
	waitFor(t, fmt.Sprintf("%d events received", len(want)), func() bool {
		got = r.ids()
		return len(got) >= len(want)
	})

	perPartition := func(ids []string) map[int][]string {
		by := map[int][]string{}
		for _, text := range ids {
			id, err := event.ParseID(text)
			must(t, err)
			by[id.Partition()] = append(by[id.Partition()], text)
		}

		return by
	}

	var texts []string
	for _, id := range want {
		texts = append(texts, id.String())
	}

	if g, w := perPartition(got), perPartition(texts); fmt.Sprint(g) != fmt.Sprint(w) {
		t.Errorf("received %v\nwant %v", g, w)
	}
}

func respond(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// waitFor waits until done returns true.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// metricValue returns the value of a metric without labels.
func metricValue(t testing.TB, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	must(t, err)

	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetCounter().GetValue() + f.GetMetric()[0].GetGauge().GetValue()
		}
	}

	t.Fatalf("no metric %s", name)
	return 0
}
