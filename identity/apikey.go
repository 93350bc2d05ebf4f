package identity

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

const keyPrefix = "tk_"

// AuthenticateKey returns which account's key this is. It looks for the key's
// hash, which takes the same time whatever part of a key is right.
func (s *Service) AuthenticateKey(ctx context.Context, key string) (*Principal, error) {
	p, ok := s.findKey(ctx, key)
	if !ok {
		s.metrics.keyChecks.WithLabelValues(resultWrong).Inc()
		return nil, fault.Unauthenticated("The API key is not valid")
	}
	s.metrics.keyChecks.WithLabelValues(resultOK).Inc()
	return p, nil
}

func (s *Service) findKey(ctx context.Context, key string) (*Principal, bool) {
	if len(key) != len(keyPrefix)+secretLength || !strings.HasPrefix(key, keyPrefix) {
		return nil, false
	}
	hash := hashSecret(key)
	found, ok := s.directory.Load().byHash[hash]
	if !ok {
		s.catchUp(ctx) // another process may just have made it
		found, ok = s.directory.Load().byHash[hash]
	}
	p := &Principal{KeyID: found.ID, AccountID: found.AccountID, Role: RoleAdmin}
	return p, ok && s.Valid(p) == nil
}

// CreateAPIKey creates a key of an account. The key is returned only here.
func (s *Service) CreateAPIKey(ctx context.Context, accountRef, name string) (key string, k APIKey, err error) {
	if name != "" {
		var bad problems
		bad.text("name", name, maxName, printable)
		if err := bad.fault("Invalid API key"); err != nil {
			return "", APIKey{}, err
		}
	}
	key = keyPrefix + newSecret()
	k = APIKey{ID: newID(), Name: name, CreatedAt: s.now()}
	entry := s.audit.Entry(ctx, audit.APIKeyCreate, "", "apikey:"+k.ID)
	err = s.change(ctx, changeDirectory, func(tx *sql.Tx, _ int64) error {
		account, err := resolve(ctx, tx, accountRef)
		if err != nil {
			return err
		}
		k.AccountID = account.ID
		_, err = tx.ExecContext(ctx,
			`INSERT INTO identity_api_keys (id, account_id, name, hash, created_at) VALUES ($1, $2, $3, $4, $5)`,
			k.ID, k.AccountID, k.Name, hashSecret(key), k.CreatedAt.UnixMilli())
		if err != nil {
			return sqldb.Wrap(err, "storing an API key")
		}
		entry.AccountID = k.AccountID
		return s.audit.Insert(ctx, tx, entry)
	})
	if err != nil {
		return "", APIKey{}, err
	}
	s.audit.Committed(ctx, entry)
	return key, k, nil
}

// APIKeys lists an account's keys, oldest first.
func (s *Service) APIKeys(ctx context.Context, accountRef string) ([]APIKey, error) {
	account, err := resolve(ctx, s.db, accountRef)
	if err != nil {
		return nil, err
	}
	rows, err := s.db.QueryContext(ctx, `SELECT id, name, created_at FROM identity_api_keys
		WHERE account_id = $1 ORDER BY created_at, id`, account.ID)
	return sqldb.Collect(rows, err, "reading API keys", func(scan sqldb.ScanFunc) (APIKey, error) {
		key := APIKey{AccountID: account.ID}
		var created int64
		err := scan(&key.ID, &key.Name, &created)
		key.CreatedAt = time.UnixMilli(created)
		return key, err
	})
}

// DeleteAPIKey ends a key by its id.
func (s *Service) DeleteAPIKey(ctx context.Context, id string) error {
	if !storable(id) {
		return fault.NotFound("There is no API key %s", quote(id))
	}
	entry := s.audit.Entry(ctx, audit.APIKeyDelete, "", "apikey:"+id)
	err := s.change(ctx, changeDirectory, func(tx *sql.Tx, _ int64) error {
		err := tx.QueryRowContext(ctx, `DELETE FROM identity_api_keys WHERE id = $1 RETURNING account_id`, id).
			Scan(&entry.AccountID)
		if errors.Is(err, sql.ErrNoRows) {
			return fault.NotFound("There is no API key %s", quote(id))
		}
		if err != nil {
			return sqldb.Wrap(err, "deleting an API key")
		}
		return s.audit.Insert(ctx, tx, entry)
	})
	if err != nil {
		return err
	}
	s.audit.Committed(ctx, entry)
	return nil
}
