package origination

import (
	"context"

	"trunkline/internal/sqldb"
)

// Purger deletes the calls of deleted accounts.
type Purger struct{ db *sqldb.DB }

// NewPurger migrates the tables, which exist only where the role origination has
// run.
func NewPurger(ctx context.Context, db *sqldb.DB) (Purger, error) {
	return Purger{db}, db.Migrate(ctx, "origination", migrations)
}

// PurgeAccount deletes some of the ended calls and idempotency keys of a deleted account and returns
// their number, 0 if none is left.
func (p Purger) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	return p.db.DeleteSome(ctx, "purging calls",
		sqldb.Deletion{Table: "origination_calls", Key: "id", Where: "account_id = $1 AND NOT live",
			Args: []any{accountID}},
		sqldb.Deletion{Table: "origination_keys", Key: "user_id, key", Where: "account_id = $1",
			Args: []any{accountID}})
}
