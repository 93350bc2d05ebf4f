package aiprovider

import (
	"context"

	"trunkline/internal/sqldb"
)

// PurgeAccount deletes the providers of a deleted account.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	rows, err := s.db.ExecWithoutTx(ctx, `DELETE FROM ai_providers WHERE account_id = $1`, accountID)
	return rows, sqldb.Wrap(err, "purging AI providers")
}
