package recording

import (
	"context"

	"trunkline/internal/sqldb"
)

// purgePageSize is the maximum number of recordings that one PurgeAccount deletes.
const purgePageSize = 100

// PurgeAccount deletes up to purgePageSize recordings of a deleted account and returns
// their number, 0 if none is left. It deletes the object before the row, so that no object
// is left without a row.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	page, err := s.rows.selectRows(ctx, `WHERE account_id = $1 ORDER BY recording_id LIMIT $2`, accountID, purgePageSize)
	if err != nil {
		return 0, err
	}
	for _, r := range page {
		if err := s.backend.Delete(ctx, r.object); err != nil {
			return n, err
		}
		if err := s.rows.deletePurged(ctx, r); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// deletePurged deletes the row of a deleted object.
func (t rows) deletePurged(ctx context.Context, r *row) error {
	_, err := t.db.ExecWithoutTx(ctx, `DELETE FROM recordings WHERE account_id = $1 AND recording_id = $2 AND object = $3`,
		r.AccountID, r.RecordingID, r.object)
	return sqldb.Wrap(err, "purging a recording's metadata")
}

// Delete deletes a recording.
func (s *Service) Delete(ctx context.Context, accountID, recordingID string) error {
	r, err := s.rows.deleteRow(ctx, accountID, recordingID)
	if err != nil {
		return err
	}
	if err := s.backend.Delete(ctx, r.object); err != nil {
		// Without a row the object cannot be read any more, and Sweep deletes it.
		s.log.WarnContext(ctx, "deleting a recording's object failed", "object", r.object, "error", err)
	}
	return nil
}
