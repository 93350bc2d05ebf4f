package identity

import (
	"context"
	"database/sql"
	"time"

	"trunkline/audit"
	"trunkline/internal/entitytag"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
)

const keyPrefix = "tk_"

// NewAPIKey has the fields of an API key to create.
type NewAPIKey struct {
	Account   string    // id, name or domain
	Name      string    // may be ""
	Scopes    []Scope   // nil for DefaultScopes
	Role      Role      // "" for RoleAdmin
	Limits              // of the role
	ExpiresAt time.Time // zero for a key that never expires

	By *Principal // whose rights bound the key's; nil for the operator
}

// CreateAPIKey creates a key of an account. The key is returned only here.
func (d *Directory) CreateAPIKey(ctx context.Context, n NewAPIKey) (key string, k APIKey, err error) {
	k, err = buildAPIKey(n, d.cfg.storedNow())
	if err != nil {
		return "", APIKey{}, err
	}

	if err := d.checkGrantedKey(n.By, k, APIKey{}); err != nil {
		return "", APIKey{}, err
	}

	key = keyPrefix + newSecret()
	entry := d.audit.Entry(ctx, audit.APIKeyCreate, "", "apikey:"+k.ID)
	err = d.changes.auditedTx(ctx, changeDirectory, &entry, func(tx *sql.Tx, _ int64) error {
		account, err := resolveAccount(ctx, tx, n.Account)
		if err != nil {
			return err
		}

		k.AccountID = account.ID
		if err := checkQuota(ctx, tx, "identity_api_keys", account.ID, "API keys", d.cfg.Accounts.APIKeys,
			"account.api_keys"); err != nil {
			return err
		}

		_, err = tx.ExecContext(ctx,
			`INSERT INTO identity_api_keys (id, account_id, name, hash, created_at, scopes, expires_at, role, queue_ids, agent_ids)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
			k.ID, k.AccountID, k.Name, hashSecret(key), k.CreatedAt.UnixMilli(), joinScopes(k.Scopes, ","),
			nullTime(k.ExpiresAt),
			string(k.Role), idList(k.QueueIDs), idList(k.AgentIDs))
		entry.AccountID = k.AccountID

		return sqldb.Wrap(err, "storing an API key")
	})
	if err != nil {
		return "", APIKey{}, err
	}

	return key, k, nil
}

// buildAPIKey validates n and returns the key to create, without the account.
func buildAPIKey(n NewAPIKey, now time.Time) (APIKey, error) {
	var bad fieldProblems
	if n.Name != "" {
		bad.checkText("name", n.Name, maxNameLength, printable)
	}
	if !n.ExpiresAt.IsZero() && !n.ExpiresAt.After(now) {
		bad.add("expires_at", codeInvalid, "expires_at is in the past")
	}

	n.Role, n.Limits = roleOfKey(n.Role), n.clean()
	bad.checkRole("", n.Role, n.Limits)
	if n.Role == RoleAgent && len(n.AgentIDs) == 0 {
		bad.add("agent_ids", codeRequired, "agent_ids is required: an API key has no extension")
	}
	if err := bad.asError("Invalid API key"); err != nil {
		return APIKey{}, err
	}

	scopes, err := normalizeScopes(n.Scopes)
	return APIKey{ID: sqldb.NewID(), Name: n.Name, Scopes: scopes, Role: n.Role, Limits: n.Limits,
		ExpiresAt: toMillis(n.ExpiresAt), CreatedAt: now}, err
}

const apiKeyColumns = `id, account_id, name, created_at, scopes, expires_at, role, queue_ids, agent_ids`

// scanAPIKey scans a row with the columns of leading, then apiKeyColumns.
func scanAPIKey(scan sqldb.ScanFunc, leading ...any) (APIKey, error) {
	var key APIKey
	var created int64
	var scopeList string
	var expires sql.NullInt64
	err := scan(append(leading, &key.ID, &key.AccountID, &key.Name, &created, &scopeList, &expires, &key.Role,
		(*idList)(&key.QueueIDs), (*idList)(&key.AgentIDs))...)
	key.CreatedAt, key.Scopes, key.ExpiresAt = time.UnixMilli(created), splitScopes(scopeList), timeFromNull(expires)
	return key, err
}

// ListAPIKeys lists an account's keys, oldest first, expired ones included.
func (d *Directory) ListAPIKeys(ctx context.Context, accountRef string) ([]APIKey, error) {
	account, err := resolveAccount(ctx, d.db, accountRef)
	if err != nil {
		return nil, err
	}
	rows, err := d.db.QueryContext(ctx, `SELECT `+apiKeyColumns+` FROM identity_api_keys
		WHERE account_id = $1 ORDER BY created_at, id`, account.ID)
	return sqldb.Collect(rows, err, "reading API keys",
		func(scan sqldb.ScanFunc) (APIKey, error) { return scanAPIKey(scan) })
}

// FindAPIKey returns the key with the id. Returns fault.KindNotFound if there is none.
func (d *Directory) FindAPIKey(ctx context.Context, id string) (APIKey, error) {
	return selectAPIKey(ctx, d.db, id)
}

func selectAPIKey(ctx context.Context, db sqldb.Runner, id string) (APIKey, error) {
	row := db.QueryRowContext(ctx, `SELECT `+apiKeyColumns+` FROM identity_api_keys WHERE id = $1`, id)
	return sqldb.Find(row, fault.NotFound("There is no API key %s", quote(id)), "reading an API key",
		func(scan sqldb.ScanFunc) (APIKey, error) { return scanAPIKey(scan) })
}

// APIKeyUpdate has the new values of an API key's fields.
type APIKeyUpdate struct {
	Name   string
	Scopes []Scope
	Role   Role // "" to keep the stored one and its limits
	Limits
	ExpiresAt *time.Time // nil to keep the stored one; zero for never
	IfMatch   string     // If-Match header; "" for an unconditional update

	By *Principal // as in NewAPIKey
}

// UpdateAPIKey changes a key's name, scopes and expiry, not its secret. The change also
// applies to channel tokens issued from the key.
func (d *Directory) UpdateAPIKey(ctx context.Context, id string, u APIKeyUpdate) (APIKey, error) {
	var key APIKey
	entry := d.audit.Entry(ctx, audit.APIKeyUpdate, "", "apikey:"+id)
	err := d.changes.auditedTx(ctx, changeDirectory, &entry, func(tx *sql.Tx, _ int64) error {
		old, err := selectAPIKey(ctx, tx, id)
		if err != nil {
			return err
		}

		if err := entitytag.Require(u.IfMatch, old.ETag()); err != nil {
			return err
		}

		n := NewAPIKey{Name: u.Name, Scopes: u.Scopes, Role: u.Role, Limits: u.Limits}
		if u.Role == "" {
			n.Role, n.Limits = old.Role, old.Limits
		}
		if u.ExpiresAt != nil {
			n.ExpiresAt = *u.ExpiresAt
		}

		key, err = buildAPIKey(n, d.cfg.storedNow())
		if err != nil {
			return err
		}

		key.ID, key.AccountID, key.CreatedAt = old.ID, old.AccountID, old.CreatedAt
		// After buildAPIKey, which refuses a time in the past: an expired key keeps its own.
		if u.ExpiresAt == nil {
			key.ExpiresAt = old.ExpiresAt
		}
		if err := d.checkGrantedKey(u.By, key, old); err != nil {
			return err
		}

		_, err = tx.ExecContext(ctx,
			`UPDATE identity_api_keys SET name = $2, scopes = $3, expires_at = $4, role = $5, queue_ids = $6, agent_ids = $7 WHERE id = $1`,
			id, key.Name, joinScopes(key.Scopes, ","), nullTime(key.ExpiresAt), string(key.Role), idList(key.QueueIDs),
			idList(key.AgentIDs))
		entry.AccountID = key.AccountID

		return sqldb.Wrap(err, "storing an API key")
	})

	return key, err
}

// DeleteAPIKey deletes the key with the id. ifMatch is the request's If-Match header, ""
// for none. Returns fault.KindPrecondition if it does not match.
func (d *Directory) DeleteAPIKey(ctx context.Context, id, ifMatch string) error {
	entry := d.audit.Entry(ctx, audit.APIKeyDelete, "", "apikey:"+id)
	return d.changes.auditedTx(ctx, changeDirectory, &entry, func(tx *sql.Tx, _ int64) error {
		key, err := selectAPIKey(ctx, tx, id)
		if err != nil {
			return err
		}

		if err := entitytag.Require(ifMatch, key.ETag()); err != nil {
			return err
		}

		entry.AccountID = key.AccountID
		_, err = tx.ExecContext(ctx, `DELETE FROM identity_api_keys WHERE id = $1`, id)
		return sqldb.Wrap(err, "deleting an API key")
	})
}
