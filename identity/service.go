package identity

import (
	"context"
	"embed"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Service is the parts of this package on one database. Callers take the part that they
// need.
type Service struct {
	Directory   *Directory
	Tokens      *Tokens
	Credentials *Credentials
}

// New migrates the tables and loads them into memory. If there is a master key it also
// calls Tokens.PrepareSigning.
func New(ctx context.Context, cfg Config, db *sqldb.DB, keyring *masterkey.Keyring, limiter Limiter,
	auditLog *audit.Log,
	reg prometheus.Registerer, log *slog.Logger) (*Service, error) {
	if keyring == nil || limiter == nil || auditLog == nil {
		return nil, errors.New("identity: no secrets, limiter or audit log")
	}

	cfg = cfg.withDefaults()
	if err := errors.Join(setting.Validate("auth", cfg.Settings), cfg.Argon2.check()); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "identity", migrations); err != nil {
		return nil, err
	}

	changes := newDatabaseChanges(db, auditLog, log)
	changes.metrics = newMetrics(reg, changes.freshness.age)
	phones := &phonePasswords{db: db, keyring: keyring, portalRule: cfg.SIPPortalPassword, now: cfg.Now, log: log}
	directory := newDirectory(cfg, changes, phones)
	tokens := newTokens(cfg, directory, keyring, limiter)
	credentials := newCredentials(cfg, tokens, keyring, reg)

	changes.reloadRevocations = append(changes.reloadRevocations, directory.reloadUsers, tokens.reloadRevocations)
	changes.reloadDirectory = append(changes.reloadDirectory, tokens.reloadSigningKeys, directory.reload)
	if err := changes.poll(ctx); err != nil {
		return nil, err
	}

	if tokens.hasMasterKey() {
		if err := tokens.PrepareSigning(ctx); err != nil {
			return nil, err
		}
	}

	return &Service{Directory: directory, Tokens: tokens, Credentials: credentials}, nil
}

// Run follows changes made by other processes, rotates the signing key and deletes
// expired rows, until ctx ends. While the database is unavailable it retries, and memory
// does not change.
func (s *Service) Run(ctx context.Context) error {
	changes := s.Directory.changes
	delay := pollInterval
	timer := time.NewTimer(delay)
	defer timer.Stop()

	checkedExpiry := s.Directory.cfg.Now()
	maintenance := time.NewTicker(maintenanceInterval)
	defer maintenance.Stop()

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-maintenance.C:
			err := s.runMaintenance(ctx)
			if err != nil && ctx.Err() == nil {
				changes.log.WarnContext(ctx, "maintenance failed, retrying", "error", err)
			}
		case <-timer.C:
			err := changes.pollWithTimeout(ctx)
			checkedExpiry = s.Directory.notifyExpiredKeys(checkedExpiry)
			delay = changes.nextPollDelay(ctx, err, delay)
			timer.Reset(delay)
		}
	}
}

func (s *Service) runMaintenance(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := errors.Join(s.Tokens.deleteExpired(ctx), s.Credentials.limits.addresses.deleteExpired(ctx))
	if !s.Tokens.hasMasterKey() {
		return err
	}
	return errors.Join(s.Tokens.rotateKeys(ctx), err)
}
