package identity

import (
	"context"
	"database/sql"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

const password = "correct horse battery"

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func withCheapHashes(c Config) Config {
	if c.Settings == (Settings{}) {
		c.Settings = DefaultSettings()
	}
	c.Argon2 = Argon2{MemoryKiB: 8, Passes: 1, Lanes: 1}
	return c
}

// withLifetimes returns the default settings with lifetimes of portal tokens, and an hour for
// channel tokens.
func withLifetimes(access, refresh time.Duration) Settings {
	s := DefaultSettings()
	s.AccessTTL, s.RefreshTTL, s.EventsTTL = access, refresh, time.Hour
	return s
}

// startService returns a node with a pool of its own, like another process.
func startService(t testing.TB, db sqldb.Config, cfg Config) *testService {
	t.Helper()
	return startServiceOn(t, testdb.Open(t, db), cfg, NewMemoryLimiter())
}

func startServiceOn(t testing.TB, db *sqldb.DB, cfg Config, limiter Limiter) *testService {
	t.Helper()
	return startServiceWithKeys(t, db, cfg, limiter, sharedRing(t))
}

func startServiceWithKeys(t testing.TB, db *sqldb.DB, cfg Config, limiter Limiter,
	keys *masterkey.Keyring) *testService {
	t.Helper()
	return must(newService(t, db, cfg, limiter, keys))(t)
}

func newService(t testing.TB, db *sqldb.DB, cfg Config, limiter Limiter,
	keys *masterkey.Keyring) (*testService, error) {
	log := &testservice.Log{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	auditLog, err := audit.New(t.Context(), audit.DefaultSettings(),
		audit.Deps{DB: db, Metrics: prometheus.NewRegistry(), Log: logger})
	if err != nil {
		return nil, err
	}

	s, err := New(t.Context(), withCheapHashes(cfg), db, keys, limiter, auditLog, prometheus.NewRegistry(), logger)
	if err != nil {
		return nil, err
	}

	return &testService{Directory: s.Directory, Tokens: s.Tokens, Credentials: s.Credentials, service: s,
		db: db, changes: s.Directory.changes, logged: log, auditLog: auditLog}, nil
}

// sharedRing returns a ring with the same key for all nodes of a test.
func sharedRing(t testing.TB) *masterkey.Keyring {
	t.Helper()
	return must(masterkey.Open(masterkey.Settings{Value: setting.Secret(strings.Repeat("0f1e2d3c", 8))}))(t)
}

// testService has all parts of a node.
type testService struct {
	*Directory
	*Tokens
	*Credentials
	service  *Service
	db       *sqldb.DB
	changes  *databaseChanges
	logged   *testservice.Log
	auditLog *audit.Log
}

// useKeys replaces the master keys of all parts.
func (s *testService) useKeys(keys *masterkey.Keyring) {
	s.Tokens.keyring, s.Credentials.keyring, s.Directory.phones.keyring = keys, keys, keys
}

// run follows changes until the test ends.
func (s *testService) run(t testing.TB) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func (s *testService) demo(t testing.TB) *testService {
	t.Helper()
	if seeded, err := s.SeedDemo(t.Context(), password); err != nil || !seeded {
		t.Fatalf("seeded %v: %v", seeded, err)
	}
	return s
}

func demoLogin(user string) LoginRequest {
	return LoginRequest{Username: user, Password: password, Domain: "demo.local", Address: "192.0.2.1"}
}

func (s *testService) mustLogin(t testing.TB, user string) *Session {
	t.Helper()
	return must(s.Login(t.Context(), demoLogin(user)))(t)
}

func (s *testService) mustAuthenticate(t testing.TB, token string) *Principal {
	t.Helper()
	return must(s.Authenticate(t.Context(), token))(t)
}

// must returns the value of a call that must succeed.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func wantKind(t testing.TB, what string, err error, kind fault.Kind) {
	t.Helper()
	if got := fault.KindOf(err); got != kind {
		t.Errorf("%s: kind %q, want %q (%v)", what, got, kind, err)
	}
}

// waitFor waits until is returns true.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Errorf("not in time: %s", what)
}

// patience limits the wait for a condition.
const patience = 3 * time.Minute

// deleteAnyVersion deletes an account, whatever its entity tag is.
func (s *testService) deleteAnyVersion(ctx context.Context, ref string) error {
	_, err := s.DeleteAccount(ctx, ref, "")
	return err
}

// startLimited returns a node whose limits pass with the clock.
func startLimited(t testing.TB, cfg sqldb.Config, c *clock, change func(*Config)) *testService {
	limiter := NewMemoryLimiter()
	limiter.now = c.now
	config := Config{Now: c.now, Settings: DefaultSettings()}
	if change != nil {
		change(&config)
	}
	return startServiceOn(t, testdb.Open(t, cfg), config, limiter).demo(t)
}

// newRing returns a ring with one key of its own.
func newRing(t testing.TB) *masterkey.Keyring {
	t.Helper()
	ring := emptyRing(t)
	if _, err := ring.Create(); err != nil {
		t.Fatal(err)
	}
	return ring
}

func emptyRing(t testing.TB) *masterkey.Keyring {
	t.Helper()
	ring, err := masterkey.Open(masterkey.Settings{File: filepath.Join(t.TempDir(), "master.key")})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func (s *testService) countRows(t testing.TB, table string) (n int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// execInChange runs a statement as a change of the directory.
func execInChange(t *testing.T, s *testService, statement string, args ...any) {
	t.Helper()
	err := s.changes.tx(t.Context(), changeDirectory, func(tx *sql.Tx, _ int64) error {
		_, err := tx.ExecContext(t.Context(), statement, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// insertAccounts stores accounts without the rules of CreateAccount, as earlier versions
// did, and raises the revision.
func (s *testService) insertAccounts(t testing.TB, accounts []Account) {
	t.Helper()
	err := s.db.Tx(t.Context(), func(tx *sql.Tx) error {
		for _, a := range accounts {
			_, err := tx.ExecContext(t.Context(),
				`INSERT INTO identity_accounts (id, name, domain, parent_id, time_zone, created_at) VALUES ($1, $1, $1, $2, '', 1)`,
				a.ID, sql.NullString{String: a.ParentID, Valid: a.ParentID != ""})
			if err != nil {
				return err
			}
		}

		_, err := tx.ExecContext(t.Context(), `UPDATE identity_revision SET directory = directory + 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
