package identity

import (
	"context"
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
	cfg        Config
	db         *sqldb.DB
	keyring    *masterkey.Keyring
	limiter    Limiter
	audit      *audit.Log
	metrics    *metrics
	log        *slog.Logger
	passwords  *passwords
	provider   *oidc.Client // nil if auth.oidc is not set
	addresses  *knownAddresses
	phoneLocks stripedLock // held per user while a phone authenticates

	directory       atomic.Pointer[directory]
	revoked         revocations
	userStates      userStates
	unknownAccounts negativeCache
	unknownUsers    negativeCache
	filters         *cache[string, Filter] // by id
	changeSignal    broadcast
	changeSlot      chan struct{} // semaphore: held during a change

	pollMu            sync.Mutex
	loaded            revision           // of the data in memory; guarded by pollMu
	changes           *sqldb.ChangeWatch // used by Run's polls; guarded by pollMu
	freshness         freshness
	pollCount         atomic.Uint64 // number of polls begun
	earlyPollLimiter  *rate.Limiter // limits polls outside Run
	userLookupLimiter *rate.Limiter // limits lookupUser
	// accountLookupLimiter limits lookups of accounts that are cached as unknown.
	accountLookupLimiter *rate.Limiter
}

// New migrates the tables and loads the directory into memory. If there is a master key
// it also calls PrepareSigning.
func New(ctx context.Context, cfg Config, db *sqldb.DB, secrets *masterkey.Keyring, limiter Limiter,
	auditLog *audit.Log,
	reg prometheus.Registerer, log *slog.Logger) (*Service, error) {
	if secrets == nil || limiter == nil || auditLog == nil {
		return nil, errors.New("identity: no secrets, limiter or audit log")
	}
	cfg = cfg.withDefaults()
	if err := errors.Join(setting.Validate("auth", cfg.Settings), cfg.Argon2.check()); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "identity", migrations); err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, db: db, keyring: secrets, limiter: limiter, audit: auditLog, log: log,
		passwords:            newPasswords(cfg.Argon2, cfg.HashSlots),
		addresses:            newKnownAddresses(db, secrets, cfg.Now, log),
		revoked:              revocations{until: make(map[string]int64)},
		userStates:           userStates{states: make(map[string]userState)},
		filters:              newCache[string, Filter](maxCachedFilters),
		changeSignal:         broadcast{changed: make(chan struct{})},
		changeSlot:           make(chan struct{}, 1),
		changes:              db.WatchChanges(),
		earlyPollLimiter:     rate.NewLimiter(earlyPollsPerSecond, earlyPollsPerSecond),
		unknownAccounts:      newNegativeCache(),
		unknownUsers:         newNegativeCache(),
		userLookupLimiter:    rate.NewLimiter(userLookupsPerSecond, userLookupsPerSecond),
		accountLookupLimiter: rate.NewLimiter(accountLookupsPerSecond, accountLookupsPerSecond),
	}
	s.metrics = newMetrics(reg, s.freshness.age)
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
func (s *Service) Changed() <-chan struct{} { return s.changeSignal.channel() }
