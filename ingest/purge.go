package ingest

import (
	"context"

	"trunkline/internal/sqldb"
)

// Purger deletes the Idempotency-Keys of deleted accounts.
type Purger struct{ db *sqldb.DB }

// NewPurger migrates the table, which exists only where the role ingest has run.
func NewPurger(ctx context.Context, db *sqldb.DB) (Purger, error) {
	return Purger{db}, migrate(ctx, db)
}

// PurgeAccount deletes some of the keys of a deleted account and returns their number, 0 if none is
// left.
func (p Purger) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	rows, err := p.db.ExecWithoutTx(ctx, `DELETE FROM ingest_keys WHERE (source, key) IN
		(SELECT source, key FROM ingest_keys WHERE account_id = $1 LIMIT $2)`, accountID, purgeBatch)
	return rows, sqldb.Wrap(err, "purging Idempotency-Keys")
}
