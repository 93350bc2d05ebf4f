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
	err = p.db.WithoutTx(ctx, func(tx sqldb.Runner) error {
		n = 0
		for _, statement := range []string{
			`DELETE FROM origination_calls WHERE id IN (SELECT id FROM origination_calls
				WHERE account_id = $1 AND NOT live LIMIT $2)`,
			`DELETE FROM origination_keys WHERE (user_id, key) IN (SELECT user_id, key FROM origination_keys
				WHERE account_id = $1 LIMIT $2)`,
		} {
			deleted, err := sqldb.Exec(ctx, tx, statement, accountID, purgeLimit)
			if err != nil {
				return err
			}
			n += deleted
		}
		return nil
	})
	return n, sqldb.Wrap(err, "purging calls")
}
