package recording

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/audit/audittest"
	"trunkline/config/encryption"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
	"trunkline/recording/envelope"
)

const (
	firstKey  = "the first key of this account, long enough"
	secondKey = "the second key of this account, long enough"
)

// env is a recording service with its real dependencies.
type env struct {
	*Service
	audited *audit.Log
	config  *encryption.Service
	keys    *failingKeys
	dir     string // of the store
	events  *fakePublisher
}

// failingKeys are the keys of Service, or fail with off if that is set.
type failingKeys struct {
	*encryption.Service
	off error
}

func (k *failingKeys) Current(ctx context.Context, accountID string) (encryption.Sealing, error) {
	if k.off != nil {
		return encryption.Sealing{}, k.off
	}
	return k.Service.Current(ctx, accountID)
}

// fakePublisher keeps the published events.
type fakePublisher struct {
	mu   sync.Mutex
	sent []string
	fail error
	more chan struct{} // one for each event
}

func (e *fakePublisher) Publish(_ context.Context, _ string, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fail != nil {
		return e.fail
	}
	e.sent = append(e.sent, string(data))
	e.more <- struct{}{}
	return nil
}

func onEachDatabase(t *testing.T, test func(t *testing.T, h *env)) {
	testdb.OnBoth(t, func(t *testing.T, at sqldb.Config) { test(t, newEnv(t, Settings{}, at)) })
}

func newEnv(t testing.TB, cfg Settings, at sqldb.Config) *env {
	t.Helper()
	ctx := context.Background()
	db := testdb.Open(t, at)
	ring := must(masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")}))(t)
	must(ring.Create())(t)
	audited := audittest.New(t, db)
	h := &env{
		audited: audited,
		config:  must(encryption.New(ctx, db, ring, audited, prometheus.NewRegistry()))(t),
		dir:     filepath.Join(t.TempDir(), "recordings"),
		events:  &fakePublisher{more: make(chan struct{}, 1000)},
	}
	h.keys = &failingKeys{Service: h.config}
	store := must(OpenDir(h.dir))(t)
	t.Cleanup(func() { check(t, store.Close()) })
	h.Service = must(New(ctx, cfg, Deps{
		DB: db, Store: store, Keys: h.keys, Publisher: h.events, Audit: audited,
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	}))(t)
	h.seals.roots = sharedRoots()

	return h
}

// sharedRoots stretches a key once for all tests: under the race detector it
// takes a second.
var sharedRoots = sync.OnceValue(func() *envelope.RootCache {
	roots, err := envelope.NewRootCache(100)
	if err != nil {
		panic(err) // a test's set-up
	}
	return roots
})

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// configure sends a change, with a fixed salt so that roots are shared.
func (h *env) configure(t testing.TB, account string, c encryption.Change) {
	t.Helper()
	if c.Salt == nil {
		c.Salt = new("the salt of all tests")
	}
	must(h.config.Update(context.Background(), account, c, ""))(t)
}

func (h *env) storeAudio(account, id string, audio []byte) (*Metadata, error) {
	return h.Store(context.Background(),
		Upload{AccountID: account, RecordingID: id, ContentType: "audio/x-wav", Body: bytes.NewReader(audio)})
}

func (h *env) play(account, id string) (audio []byte, err error) {
	a, err := h.Open(context.Background(), account, id)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return io.ReadAll(a)
}

// objects lists the files in the store, unfinished ones included.
func (h *env) objects(t testing.TB) []string {
	t.Helper()
	return must(filepath.Glob(filepath.Join(h.dir, "*", "*")))(t)
}

// testAudio is audio in which a reader would find words.
func testAudio(n int) []byte {
	return bytes.Repeat([]byte("the caller said something private. "), n/35+1)[:n]
}

func checkError(t testing.TB) func(any, error) {
	return func(_ any, err error) { t.Helper(); check(t, err) }
}
