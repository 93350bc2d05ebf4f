package aiprovider

import (
	"context"

	"trunkline/internal/sqldb"
)

// PurgeAccount deletes the providers of a deleted account.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	err = s.db.Alone(ctx, func(tx sqldb.Runner) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM ai_providers WHERE account_id = $1`, accountID)
		if err != nil {
			return err
		}
		deleted, err := result.RowsAffected()
		n = int(deleted)
		return err
	})
	return n, sqldb.Wrap(err, "purging AI providers")
}
