package identity

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"trunkline/internal/sqldb"
)

// clockMargin covers nodes whose clocks differ: a token that one of them considers
// expired may be valid this much longer at another.
const clockMargin = 5 * time.Minute

// revocations is the set of the ids of revoked tokens, families and users.
type revocations struct {
	mu    sync.RWMutex
	until map[string]int64 // Unix milliseconds after which the entry can be deleted
}

func (r *revocations) has(id string) bool {
	if id == "" {
		return false
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	_, revoked := r.until[id]
	return revoked
}

func (r *revocations) add(added []revocation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, revocation := range added {
		r.until[revocation.id] = revocation.expires
	}
}

func (r *revocations) deleteExpired(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, expires := range r.until {
		if expires < now.UnixMilli() {
			delete(r.until, id)
		}
	}
}

// reloadRevocations reads the revocations that were stored after a revision. Those of users
// say which were deleted.
func (t *Tokens) reloadRevocations(ctx context.Context, after int64) error {
	added, err := readRevocations(ctx, t.db, after)
	if err != nil {
		return err
	}
	t.directory.userStates.remove(added)
	t.revocations.add(added)
	return nil
}

type revocation struct {
	id      string
	expires int64 // Unix milliseconds
}

func readRevocations(ctx context.Context, db sqldb.Runner, after int64) ([]revocation, error) {
	rows, err := db.QueryContext(ctx, `SELECT id, expires_at FROM identity_revocations WHERE revision > $1`, after)
	return sqldb.Collect(rows, err, "reading revocations", func(scan sqldb.ScanFunc) (revocation, error) {
		var r revocation
		err := scan(&r.id, &r.expires)
		return r, err
	})
}

// revoke revokes the token with the id, or all tokens of the family or user with the id.
// The last of them expires at expires.
func revoke(ctx context.Context, tx *sql.Tx, rev int64, id string, expires time.Time) error {
	_, err := tx.ExecContext(ctx,
		`INSERT INTO identity_revocations (id, expires_at, revision) VALUES ($1, $2, $3)
		ON CONFLICT (id) DO UPDATE SET revision = excluded.revision,
			expires_at = CASE WHEN excluded.expires_at > identity_revocations.expires_at
				THEN excluded.expires_at ELSE identity_revocations.expires_at END`,
		id, expires.Add(clockMargin).UnixMilli(), rev)
	return sqldb.Wrap(err, "storing a revocation")
}

// revokeFamily revokes all access tokens issued from one login, and deletes its
// refresh tokens. The revocation lasts until atLeast or the expiry of the last stored
// access token, whichever is later.
func revokeFamily(ctx context.Context, tx *sql.Tx, rev int64, family string, atLeast time.Time) error {
	var last sql.NullInt64
	err := tx.QueryRowContext(ctx,
		`SELECT MAX(access_expires_at) FROM identity_refresh_tokens WHERE family_id = $1`, family).Scan(&last)
	if err != nil {
		return sqldb.Wrap(err, "reading a token family")
	}

	expires := time.UnixMilli(last.Int64)
	if last.Valid && expires.After(atLeast) {
		atLeast = expires
	}
	if err := revoke(ctx, tx, rev, family, atLeast); err != nil {
		return err
	}

	_, err = tx.ExecContext(ctx, `DELETE FROM identity_refresh_tokens WHERE family_id = $1`, family)
	return sqldb.Wrap(err, "deleting a token family")
}

// revokeUser revokes all tokens of a user who is being deleted. The refresh tokens are
// deleted with the user's row.
func revokeUser(ctx context.Context, tx *sql.Tx, rev int64, userID string, now time.Time) error {
	return revoke(ctx, tx, rev, userID, now.Add(maxTokenTTL))
}

// deleteExpired deletes expired revocations, filters and refresh tokens.
func (t *Tokens) deleteExpired(ctx context.Context) error {
	now := t.cfg.Now()
	t.revocations.deleteExpired(now)
	for _, table := range []string{"identity_revocations", "identity_filters"} {
		_, err := t.db.ExecContext(ctx, `DELETE FROM `+table+` WHERE expires_at < $1`, now.UnixMilli())
		if err != nil {
			return sqldb.Wrap(err, "deleting expired rows of "+table)
		}
	}

	_, err := t.db.ExecContext(ctx,
		`DELETE FROM identity_refresh_tokens WHERE expires_at < $1 AND access_expires_at < $1`, now.UnixMilli())
	return sqldb.Wrap(err, "deleting expired refresh tokens")
}
