package encryption

import (
	"context"
	"database/sql"
	"embed"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/keylock"
	"trunkline/internal/masterkey"
	"trunkline/internal/rounds"
	"trunkline/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Service stores the configurations of all accounts. It is safe for concurrent use.
type Service struct {
	db      *sqldb.DB
	keys    *masterkey.Keyring
	audit   *audit.Log
	metrics *metrics
	reads   rounds.Queue[*pendingRead]

	// changeLocks serialize the changes of one account in this process, so that they need
	// not start over.
	changeLocks keylock.Locks
}

// New migrates the tables. It returns an error if a stored key cannot be unsealed, such
// as without the master key.
func New(ctx context.Context, db *sqldb.DB, keys *masterkey.Keyring, auditLog *audit.Log,
	reg prometheus.Registerer) (*Service, error) {
	if err := db.Migrate(ctx, "encryption", migrations); err != nil {
		return nil, err
	}
	s := &Service{db: db, keys: keys, audit: auditLog, metrics: newMetrics(reg)}
	s.reads.Run, s.reads.Max = s.readAll, maxReadBatch
	return s, s.Secrets().Require(ctx)
}

// Secrets returns the table of the sealed keys.
func (s *Service) Secrets() masterkey.SealedTable {
	return masterkey.SealedTable{DB: s.db, Keyring: s.keys, Table: keysTable,
		KeyColumns: []string{"account_id", "version"}, SecretColumn: "sealed"}
}

// Result is the result of Find and Update.
type Result struct {
	Config *Document // nil if the account was never configured
	ETag   string
}

func newResult(s *accountConfig) *Result {
	result := &Result{ETag: etag(s.revision)}
	if s.exists {
		result.Config = s.toDocument()
	}
	return result
}

// Find returns an account's configuration, secrets included, and writes an audit entry
// of the context's caller.
func (s *Service) Find(ctx context.Context, accountID string) (*Result, error) {
	config, err := s.read(ctx, s.audit.Entry(ctx, audit.EncryptionRead, accountID, ""))
	if err != nil {
		return nil, err
	}
	s.metrics.reads.Inc()
	return newResult(config), nil
}

// Update applies a change, all of it or nothing, and writes an audit entry of the
// context's caller. ifMatch is the request's If-Match header, "" for none.
func (s *Service) Update(ctx context.Context, accountID string, c Change, ifMatch string) (*Result, error) {
	unlock, err := s.changeLocks.Lock(ctx, accountID)
	if err != nil {
		return nil, updateFault(err)
	}
	defer unlock()

	old, next, err := s.changeAndSave(ctx, accountID, c, ifMatch)
	if err != nil {
		return nil, updateFault(err)
	}

	s.metrics.countChange(old, next)
	return newResult(next), nil
}

// changeAndSave reads the configuration, applies the change and saves the result. It starts
// over if the stored configuration has changed in between.
func (s *Service) changeAndSave(ctx context.Context, accountID string, c Change,
	ifMatch string) (old, next *accountConfig, err error) {
	entry := s.audit.Entry(ctx, audit.EncryptionUpdate, accountID, "")
	for saved := false; !saved; {
		old, err = s.load(ctx, s.db, accountID)
		if err != nil {
			return nil, nil, err
		}

		if ifMatch != "" && !matchesIfMatch(ifMatch, old) {
			return nil, nil,
				fault.New(fault.KindPrecondition, "the encryption configuration has changed: its ETag is %s",
					etag(old.revision))
		}

		next, err = old.apply(c)
		if err != nil {
			return nil, nil, err
		}

		entry.Target = next.auditTarget()
		saved, err = s.save(ctx, entry, old, next)
		if err != nil {
			return nil, nil, err
		}
	}

	s.audit.AfterCommit(ctx, entry)
	return old, next, nil
}

// updateFault returns errors of the request and of its audit limit unchanged. It replaces any other error by
// fault.KindInternal with the message of docs/api.md.
func updateFault(err error) error {
	switch fault.KindOf(err) {
	case fault.KindInvalid, fault.KindPrecondition, fault.KindLimited:
		return err
	}
	return fault.Internal(err, MessageUpdateFailed)
}

// Key is one version of an account's key and salt. Never log it.
type Key struct {
	ID      string
	Version int64 // from 1
	Key     string
	Salt    string
}

// String returns the id only, so that logs and messages have no secrets.
func (k Key) String() string { return k.ID + " (not shown)" }

// GoString is String for %#v.
func (k Key) GoString() string { return k.String() }

// Sealing has the algorithm and key with which new recordings of an account are sealed.
// The key is the newest one, or empty if there never was one.
type Sealing struct {
	Enabled   bool // seal new recordings
	Algorithm string
	Key       Key
}

// Current returns the Sealing for a new recording of the account, the zero Sealing if the
// account was never configured. The recording may be stored only if the error is nil and
// either Enabled is false or the key is complete.
func (s *Service) Current(ctx context.Context, accountID string) (Sealing, error) {
	var out Sealing
	var version int64
	var sealed sql.NullString
	err := s.db.QueryRowContext(ctx, `SELECT c.enabled, c.algorithm, c.key_version, k.sealed
		FROM encryption_configs c LEFT JOIN encryption_keys k ON k.account_id = c.account_id AND k.version = c.key_version
		WHERE c.account_id = $1`, accountID).Scan(&out.Enabled, &out.Algorithm, &version, &sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return Sealing{}, nil
	}
	if err != nil {
		return Sealing{}, sqldb.Wrap(err, "reading the encryption configuration")
	}

	if version == 0 && !out.Enabled {
		return out, nil
	}
	if !sealed.Valid {
		return Sealing{}, fault.Internal(nil, "the account's encryption key is missing")
	}

	out.Key, err = s.unsealKey(accountID, version, sealed.String)
	return out, err
}

// Key returns one version of the key, to open recordings that were sealed under it.
func (s *Service) Key(ctx context.Context, accountID string, version int64) (Key, error) {
	var sealed string
	row := s.db.QueryRowContext(ctx, `SELECT sealed FROM encryption_keys WHERE account_id = $1 AND version = $2`,
		accountID, version)
	err := sqldb.FindInto(row, fault.NotFound("there is no version %d of the account's key", version),
		"reading an encryption key", &sealed)
	if err != nil {
		return Key{}, err
	}
	return s.unsealKey(accountID, version, sealed)
}

func (s *Service) unsealKey(accountID string, version int64, sealed string) (Key, error) {
	p, err := s.unseal(accountID, version, sealed)
	if err != nil {
		return Key{}, err
	}
	return Key{ID: KeyID(accountID), Version: version, Key: p.key, Salt: p.salt}, nil
}
