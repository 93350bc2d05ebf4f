package webhook

import (
	"context"
	"crypto/x509"
	"embed"

	"trunkline/audit"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Deps are the dependencies of a Service.
type Deps struct {
	DB        *sqldb.DB
	Keys      *masterkey.Keyring
	Audit     *audit.Log
	Filters   FilterChecker  // nil in CLI commands, which create and update nothing
	LogReader kafka.Log      // nil in CLI commands
	Version   string         // of Trunkline, for User-Agent
	Roots     *x509.CertPool // CAs of receivers' certificates; nil for those of the system
}

// Service stores the webhooks of all accounts. It is safe for concurrent use.
type Service struct {
	settings  Settings
	db        *sqldb.DB
	keys      *masterkey.Keyring
	audit     *audit.Log
	filters   FilterChecker
	events    kafka.Log
	positions *consume.Positions // of partitions
	version   string
	roots     *x509.CertPool
}

// New migrates the tables. It returns an error if the master key of a stored secret is
// missing.
func New(ctx context.Context, settings Settings, deps Deps) (*Service, error) {
	if err := setting.Validate("webhook", settings); err != nil {
		return nil, err
	}
	if err := deps.DB.Migrate(ctx, "webhook", migrations); err != nil {
		return nil, err
	}

	positions, err := consume.NewPositions(ctx, deps.DB, "webhook",
		consume.OlderTable{Table: "webhook_partitions", LastID: true})
	if err != nil {
		return nil, err
	}

	s := &Service{settings: settings, db: deps.DB, keys: deps.Keys, audit: deps.Audit, filters: deps.Filters,
		events: deps.LogReader, positions: positions,
		version: deps.Version, roots: deps.Roots}

	return s, s.Secrets().Require(ctx)
}

// newSender returns a sender of requests to receivers.
func (s *Service) newSender() *sender { return newSender(s.settings, s.version, s.roots) }

// Secrets returns the table of the sealed signing keys.
func (s *Service) Secrets() masterkey.SealedTable {
	return masterkey.SealedTable{DB: s.db, Keyring: s.keys, Table: webhooksTable,
		KeyColumns: []string{"account_id", "id"}, SecretColumn: "sealed"}
}
