package encryption

import (
	"context"
	"database/sql"

	"trunkline/internal/sqldb"
)

// PurgeAccount deletes the configuration of a deleted account, and every version
// of its key.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	err = s.db.Tx(ctx, func(tx *sql.Tx) error {
		n = 0
		for _, table := range []string{keysTable, "encryption_configs"} {
			deleted, err := sqldb.Exec(ctx, tx, `DELETE FROM `+table+` WHERE account_id = $1`, accountID)
			if err != nil {
				return err
			}
			n += deleted
		}

		return nil
	})

	return n, sqldb.Wrap(err, "purging an encryption configuration")
}
