package cli

import (
	"context"
	"errors"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/app/backend"
	"trunkline/audit"
	"trunkline/config/aiprovider"
	"trunkline/config/encryption"
	"trunkline/identity"
	"trunkline/internal/kafka"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/settings"
	"trunkline/webhook"
)

// AccountUsage describes flags that name an account.
const AccountUsage = "id, name or domain of the account"

// Stores are the database of the settings and the stores with its sealed secrets.
type Stores struct {
	Settings   *settings.Settings
	DB         *sqldb.DB
	Audit      *audit.Log
	Keys       *masterkey.Keyring
	Identity   *identity.Service
	Encryption *encryption.Service
	Providers  *aiprovider.Service
	Webhooks   *webhook.Service
}

// WithStores runs work on the database of the settings, with or without running servers.
// Running servers apply changes within a second.
func (p *Program) WithStores(ctx context.Context, work func(Stores) error) error {
	return p.withDatabase(ctx, backend.OpenExistingDatabase, func(stores Stores) (err error) {
		stores.Encryption, err = encryption.New(ctx, stores.DB, stores.Keys, stores.Audit, prometheus.NewRegistry())
		if err != nil {
			return err
		}

		stores.Providers, err = aiprovider.New(ctx, aiprovider.Settings{}, stores.DB, stores.Keys, stores.Audit,
			prometheus.NewRegistry())
		if err != nil {
			return err
		}

		stores.Webhooks, err = webhook.New(ctx, webhook.DefaultSettings(),
			webhook.Deps{DB: stores.DB, Keys: stores.Keys, Audit: stores.Audit})
		if err != nil {
			return err
		}

		return work(stores)
	})
}

// WithIdentity runs work on the directory, tokens and credentials.
func (p *Program) WithIdentity(ctx context.Context, work func(*identity.Service) error) error {
	return p.withDatabase(ctx, backend.OpenExistingDatabase,
		func(stores Stores) error { return work(stores.Identity) })
}

// WithDirectory runs work on the directory of accounts, users and keys.
func (p *Program) WithDirectory(ctx context.Context, work func(*identity.Directory) error) error {
	return p.WithIdentity(ctx, func(s *identity.Service) error { return work(s.Directory) })
}

// WithNewDirectory is WithDirectory, and creates the database if it does not exist.
func (p *Program) WithNewDirectory(ctx context.Context, work func(*identity.Directory) error) error {
	return p.withDatabase(ctx, backend.OpenDatabase,
		func(stores Stores) error { return work(stores.Identity.Directory) })
}

// WithAudit runs work on the audit log.
func (p *Program) WithAudit(ctx context.Context, work func(*audit.Log) error) error {
	return p.withDatabase(ctx, backend.OpenExistingDatabase, func(stores Stores) error { return work(stores.Audit) })
}

type openDatabase func(context.Context, *settings.Settings, *slog.Logger) (*sqldb.DB, error)

func (p *Program) withDatabase(ctx context.Context, open openDatabase, work func(Stores) error) (err error) {
	s, err := p.Settings()
	if err != nil {
		return err
	}

	keys, err := backend.MasterKeys(s)
	if err != nil {
		return err
	}

	db, err := open(ctx, s, p.ToolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// Its Run is not started: entries are pending until a server chains and logs them.
	auditLog, err := audit.New(ctx, s.Audit, audit.Deps{DB: db, Metrics: prometheus.NewRegistry(), Log: p.ToolLog()})
	if err != nil {
		return err
	}

	service, err := identity.New(ctx, identity.Config{Settings: s.Auth, Accounts: s.Account}, db, keys,
		identity.NewMemoryLimiter(), auditLog, prometheus.NewRegistry(), p.ToolLog())
	if err != nil {
		return err
	}

	return work(Stores{Settings: s, DB: db, Audit: auditLog, Keys: keys, Identity: service})
}

// WithKafka runs work on the Kafka of the settings. If the broker is embedded, work uses the one
// in the running server, or without a server opens its files; it does not create them.
func (p *Program) WithKafka(ctx context.Context, work func(*settings.Settings, *kafka.Cluster) error) error {
	return p.runOnKafka(ctx, backend.OpenExistingKafka, work)
}

// WithNewKafka is WithKafka, and creates the embedded broker if it does not exist.
func (p *Program) WithNewKafka(ctx context.Context, work func(*settings.Settings, *kafka.Cluster) error) error {
	return p.runOnKafka(ctx, backend.OpenSharedKafka, work)
}

type openKafka func(context.Context, *settings.Settings, *slog.Logger) (*kafka.Cluster, func() error, error)

func (p *Program) runOnKafka(ctx context.Context, open openKafka,
	work func(*settings.Settings, *kafka.Cluster) error) (err error) {
	s, err := p.Settings()
	if err != nil {
		return err
	}

	cluster, closeKafka, err := open(ctx, s, p.ToolLog())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeKafka()) }()

	return work(s, cluster)
}
