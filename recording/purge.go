package recording

import (
	"context"

	"trunkline/internal/sqldb"
)

// purgePage bounds one step of PurgeAccount.
const purgePage = 100

// PurgeAccount deletes some of the recordings of a deleted account and returns their
// number; 0: none is left. It deletes the object before the row, so that no object is
// left without a row.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	page, err := s.rows.list(ctx, `WHERE account_id = $1 ORDER BY recording_id LIMIT $2`, accountID, purgePage)
	if err != nil {
		return 0, err
	}
	for _, r := range page {
		if err := s.backend.Delete(ctx, r.object); err != nil {
			return n, err
		}
		if err := s.rows.purge(ctx, r); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// purge deletes the row of a deleted object.
func (t rows) purge(ctx context.Context, r *row) error {
	_, err := t.db.ExecWithoutTx(ctx, `DELETE FROM recordings WHERE account_id = $1 AND recording_id = $2 AND object = $3`,
		r.AccountID, r.RecordingID, r.object)
	return sqldb.Wrap(err, "purging a recording's metadata")
}
