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
	return p.db.DeleteSome(ctx, "purging Idempotency-Keys", sqldb.Deletion{Table: "ingest_keys", Key: "source, key",
		Where: "account_id = $1", Args: []any{accountID}})
}
