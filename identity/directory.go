package identity

import (
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// Directory owns the accounts, their users, devices and API keys. It is safe for
// concurrent use.
type Directory struct {
	cfg       Config
	db        *sqldb.DB
	audit     *audit.Log
	metrics   *metrics
	log       *slog.Logger
	changes   *databaseChanges
	passwords *passwordHasher
	phones    *phonePasswords

	snapshot        atomic.Pointer[snapshot]
	userStates      userStates
	unknownAccounts negativeCache
	unknownUsers    negativeCache

	userLookupLimiter *rate.Limiter // limits lookupUser
	// accountLookupLimiter limits lookups of accounts that are cached as unknown.
	accountLookupLimiter *rate.Limiter
}

func newDirectory(cfg Config, changes *databaseChanges, phones *phonePasswords) *Directory {
	d := &Directory{
		cfg: cfg, db: changes.db, audit: changes.audit, metrics: changes.metrics, log: changes.log, changes: changes,
		passwords:            newPasswordHasher(cfg.Argon2, cfg.HashSlots),
		phones:               phones,
		userStates:           userStates{states: make(map[string]userState)},
		unknownAccounts:      newNegativeCache(),
		unknownUsers:         newNegativeCache(),
		userLookupLimiter:    rate.NewLimiter(userLookupsPerSecond, userLookupsPerSecond),
		accountLookupLimiter: rate.NewLimiter(accountLookupsPerSecond, accountLookupsPerSecond),
	}
	d.snapshot.Store(&snapshot{tree: &Tree{}})

	return d
}

// Tree returns the current account tree.
func (d *Directory) Tree() *Tree { return d.snapshot.Load().tree }

// Changed returns a channel that is closed at the next change of accounts, API keys or
// revocations, and when an API key expires. Get it before reading them, so that no
// change is missed.
func (d *Directory) Changed() <-chan struct{} { return d.changes.signal.channel() }

// notifyExpiredKeys closes the channel of Changed if an API key has expired since last,
// because its channel tokens expire with it. It returns the current time, which the
// caller passes as last to the next call.
func (d *Directory) notifyExpiredKeys(last time.Time) time.Time {
	now := d.cfg.Now()
	if d.snapshot.Load().keyExpiredBetween(last, now) {
		d.changes.signal.notify()
	}
	return now
}
