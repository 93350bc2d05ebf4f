package aiprovider

import (
	"context"
	"database/sql"
	"embed"
	"encoding/json"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Service stores the providers of all accounts. It is safe for concurrent use.
type Service struct {
	settings Settings
	db       *sqldb.DB
	keys     *masterkey.Keyring
	audit    *audit.Log
	metrics  *metrics
}

// New migrates the tables. It returns an error if a stored header cannot be unsealed,
// such as without the master key.
func New(ctx context.Context, settings Settings, db *sqldb.DB, keys *masterkey.Keyring, auditLog *audit.Log,
	reg prometheus.Registerer) (*Service, error) {
	if err := setting.Validate("ai_provider", settings); err != nil {
		return nil, err
	}
	if err := db.Migrate(ctx, "aiprovider", migrations); err != nil {
		return nil, err
	}
	s := &Service{settings: settings, db: db, keys: keys, audit: auditLog, metrics: newMetrics(reg)}
	return s, s.Secrets().Require(ctx)
}

// Secrets returns the table of the sealed headers.
func (s *Service) Secrets() masterkey.SealedTable {
	return masterkey.SealedTable{DB: s.db, Keyring: s.keys, Table: tableName,
		KeyColumns: []string{"account_id", "id"}, SecretColumn: "sealed"}
}

// maxProviders is the maximum number of providers of an account.
const maxProviders = 1000

// Create creates a provider of the account from a request's body, and writes an audit
// entry of the context's caller.
func (s *Service) Create(ctx context.Context, accountID string, body map[string]json.RawMessage) (Document, error) {
	d, err := parseBody(body, "", s.settings.allowsPlain())
	if err != nil {
		return Document{}, err
	}

	// A new provider has no values that a mask could stand for.
	faults := d.restoreMasked(sealedSecrets{})
	if len(faults) > 0 {
		return Document{}, fault.Invalid(InvalidMessage, faults...)
	}

	d.ID = sqldb.NewID()
	r, err := s.seal(accountID, d)
	if err != nil {
		return Document{}, err
	}

	entry := s.audit.Entry(ctx, audit.AIProviderCreate, accountID, auditTarget(d.ID))
	err = audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		n, err := countRows(ctx, tx, accountID)
		if err != nil {
			return err
		} else if n >= maxProviders {
			return fault.Conflict("The account has %d AI providers already, the maximum", n)
		}

		return insertRow(ctx, tx, r)
	})
	if err != nil {
		return Document{}, err
	}

	s.metrics.changes.WithLabelValues(actionCreate).Inc()
	return d.masked(), nil
}

// Update replaces a provider by that of a request's body. A header or secret whose value is
// Mask keeps the stored value. Returns fault.KindInvalid for such a one if the URL has
// another origin (scheme, host, port) than the stored one.
func (s *Service) Update(ctx context.Context, accountID, id string, body map[string]json.RawMessage) (Document, error) {
	sent, err := parseBody(body, id, s.settings.allowsPlain())
	if err != nil {
		return Document{}, err
	}

	entry := s.audit.Entry(ctx, audit.AIProviderUpdate, accountID, auditTarget(id))
	err = audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		return s.updateInTx(ctx, tx, accountID, sent)
	})
	if err != nil {
		return Document{}, err
	}

	s.metrics.changes.WithLabelValues(actionReplace).Inc()
	return sent.masked(), nil
}

// updateInTx can run several times, so it does not modify sent.
func (s *Service) updateInTx(ctx context.Context, tx *sql.Tx, accountID string, sent Document) error {
	old, err := selectRow(ctx, tx, sent.ID)
	if err != nil {
		return err
	}

	if old.accountID != accountID {
		return notFound()
	}

	d, err := s.restoreSecrets(sent, old)
	if err != nil {
		return err
	}

	r, err := s.seal(accountID, d)
	if err != nil {
		return err
	}

	return updateRow(ctx, tx, r)
}

// Find returns one provider of the account, masked.
func (s *Service) Find(ctx context.Context, accountID, id string) (Document, error) {
	r, err := selectRow(ctx, s.db, id)
	if err != nil {
		return Document{}, err
	}
	if r.accountID != accountID {
		return Document{}, notFound()
	}
	return r.maskedDocument()
}

// List returns every provider of the account, masked, the oldest first. It is never
// nil.
func (s *Service) List(ctx context.Context, accountID string) ([]Document, error) {
	rows, err := selectRows(ctx, s.db, accountID)
	if err != nil {
		return nil, err
	}

	documents := make([]Document, 0, len(rows))
	for _, r := range rows {
		d, err := r.maskedDocument()
		if err != nil {
			return nil, err
		}
		documents = append(documents, d)
	}

	return documents, nil
}

// Delete deletes a provider of the account.
func (s *Service) Delete(ctx context.Context, accountID, id string) error {
	entry := s.audit.Entry(ctx, audit.AIProviderDelete, accountID, auditTarget(id))
	err := audit.Tx(ctx, s.audit, s.db.Tx, &entry, func(tx *sql.Tx) error {
		return deleteRow(ctx, tx, accountID, id)
	})
	if err != nil {
		return err
	}
	s.metrics.changes.WithLabelValues(actionDelete).Inc()
	return nil
}

// auditTarget returns a provider as the target of an audit entry.
func auditTarget(id string) string { return "ai_provider:" + id }

func notFound() error { return fault.NotFound("AI provider not found") }

func damaged(cause error) error {
	return fault.Internal(cause, "the AI provider's configuration is damaged")
}
