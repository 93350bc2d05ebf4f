package identity

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"trunkline/audit"
	"trunkline/identity/oidc"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Service owns accounts, users, API keys and tokens. It is safe for concurrent
// use.
type Service struct {
	cfg       Config
	db        *sqldb.DB
	keyring   *masterkey.Keyring
	limiter   Limiter
	audit     *audit.Log
	metrics   *metrics
	log       *slog.Logger
	passwords *passwords
	provider  *oidc.Client // nil: auth.oidc is not set
	addresses *knownAddresses
	proving   stripedLock // held per user while a phone authenticates

	directory       atomic.Pointer[directory]
	revoked         revocations
	known           userStates
	unknownAccounts negativeCache
	unknownUsers    negativeCache
	filters         *cache[string, Filter] // by id
	changes         signal
	changing        chan struct{} // semaphore: held during a change

	polling sync.Mutex
	loaded  revision      // guarded by polling
	polls   atomic.Uint64 // number of polls begun
	early   *rate.Limiter // limits polls outside Run
	lookups *rate.Limiter // limits lookupUser
}

// New migrates the tables and loads memory. If there is a master key it also runs
// PrepareSigning.
func New(ctx context.Context, cfg Config, db *sqldb.DB, secrets *masterkey.Keyring, limiter Limiter, auditLog *audit.Log,
	reg prometheus.Registerer, log *slog.Logger) (*Service, error) {
	if secrets == nil || limiter == nil || auditLog == nil {
		return nil, errors.New("identity: no secrets, limiter or audit log")
	}
	cfg = cfg.withDefaults()
	if err := errors.Join(setting.Validate("auth", cfg.Settings), cfg.Argon2.validate()); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "identity", migrations); err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, db: db, keyring: secrets, limiter: limiter, audit: auditLog, metrics: newMetrics(reg), log: log,
		passwords:       newPasswords(cfg.Argon2, cfg.HashSlots),
		addresses:       newKnownAddresses(db, secrets, cfg.Now, log),
		revoked:         revocations{until: make(map[string]int64)},
		known:           userStates{all: make(map[string]userState)},
		filters:         newCache[string, Filter](maxCachedFilters),
		changes:         signal{changed: make(chan struct{})},
		changing:        make(chan struct{}, 1),
		early:           rate.NewLimiter(earlyPolls, earlyPolls),
		unknownAccounts: newNegativeCache(),
		unknownUsers:    newNegativeCache(),
		lookups:         rate.NewLimiter(userLookups, userLookups),
	}
	if cfg.OIDC.Issuer != "" {
		s.provider = oidc.New(cfg.OIDC, cfg.Now, reg, log)
	}
	if err := s.poll(ctx); err != nil {
		return nil, err
	}
	if !s.hasMasterKey() {
		return s, nil
	}
	if err := s.PrepareSigning(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Tree returns the current account tree.
func (s *Service) Tree() *Tree { return s.directory.Load().tree }

// JWKS returns the JSON Web Key Set for the verification of tokens. Callers must not
// modify it.
func (s *Service) JWKS() []byte { return s.directory.Load().jwks }

// Changed returns a channel that is closed at the next change of accounts, API keys or
// revocations, and when an API key expires. Get it before reading them, so that no
// change is missed.
func (s *Service) Changed() <-chan struct{} { return s.changes.next() }

// staleness counts what a change adds to each revision. A change of a user raises that
// of the revocations and stores it in the user's row.
type staleness struct{ directory, revocations int }

var (
	changeDirectory   = staleness{directory: 1}
	changeRevocations = staleness{revocations: 1}
	changeBoth        = staleness{1, 1}
)

// change runs fn in a transaction that raises the revision, and then reloads this
// Service's memory. rev is the revision of revocations.
//
// The database serializes changes; the semaphore avoids transactions that would fail and
// be run again.
func (s *Service) change(ctx context.Context, stale staleness, fn func(tx *sql.Tx, rev int64) error) error {
	select {
	case s.changing <- struct{}{}:
		defer func() { <-s.changing }()
	case <-ctx.Done():
		return sqldb.Wrap(ctx.Err(), "waiting for another change")
	}
	err := s.db.Tx(ctx, func(tx *sql.Tx) error {
		var rev int64
		// The first statement: it serializes changes.
		err := tx.QueryRowContext(ctx, `UPDATE identity_revision
			SET directory = directory + $1, revocations = revocations + $2 RETURNING revocations`,
			stale.directory, stale.revocations).Scan(&rev)
		if err != nil {
			return sqldb.Wrap(err, "raising the revision")
		}
		return fn(tx, rev)
	})
	if err != nil {
		return err
	}
	// The change is committed, even if its caller has ended.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()
	if err := s.poll(ctx); err != nil {
		s.log.WarnContext(ctx, "snapshot reload failed after a stored change", "error", err)
	}
	return nil
}

// auditedChange is change with an entry of the audit log, which fn may complete.
func (s *Service) auditedChange(ctx context.Context, stale staleness, entry *audit.Entry, fn func(tx *sql.Tx, rev int64) error) error {
	var rev int64
	begin := func(ctx context.Context, in func(*sql.Tx) error) error {
		return s.change(ctx, stale, func(tx *sql.Tx, now int64) error {
			rev = now
			return in(tx)
		})
	}
	return audit.Tx(ctx, s.audit, begin, entry, func(tx *sql.Tx) error { return fn(tx, rev) })
}

// signal is a channel that is closed and replaced at each change.
type signal struct {
	mu      sync.Mutex
	changed chan struct{}
}

func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}
