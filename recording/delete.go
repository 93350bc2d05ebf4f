package recording

import (
	"context"

	"trunkline/audit"
	"trunkline/internal/sqldb"
)

// purgePageSize is the maximum number of recordings that one PurgeAccount deletes.
const purgePageSize = 100

// PurgeAccount deletes up to purgePageSize recordings of a deleted account and returns
// their number, 0 if none is left. It deletes the object before the row, so that no object
// is left without a row. Returns fault.KindConflict when only recordings with a legal hold are left.
func (s *Service) PurgeAccount(ctx context.Context, accountID string) (n int, err error) {
	page, err := s.rows.selectRows(ctx, `WHERE account_id = $1 ORDER BY hold_reason, recording_id LIMIT $2`, accountID,
		purgePageSize)
	if err != nil {
		return 0, err
	}

	if len(page) > 0 && page[0].Hold != nil { // only such are left
		return 0, errHeld(page[0].RecordingID)
	}

	for _, r := range page {
		if r.Hold != nil {
			continue
		}
		if err := s.objects.store.Delete(ctx, r.object); err != nil {
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
	_, err := t.db.ExecWithoutTx(ctx,
		`DELETE FROM recordings WHERE account_id = $1 AND recording_id = $2 AND object = $3 AND hold_reason = ''`,
		r.AccountID, r.RecordingID, r.object)
	return sqldb.Wrap(err, "purging a recording's metadata")
}

// Delete deletes a recording. Returns fault.KindConflict for one with a legal hold.
func (s *Service) Delete(ctx context.Context, accountID, recordingID string) error {
	return s.deleteAs(ctx, audit.RecordingDelete, accountID, recordingID)
}

func (s *Service) deleteAs(ctx context.Context, action audit.Action, accountID, recordingID string) error {
	r, err := s.rows.deleteRow(ctx, action, accountID, recordingID)
	if err != nil {
		return err
	}
	if err := s.objects.store.Delete(ctx, r.object); err != nil {
		// Without a row the object cannot be read any more, and Sweep deletes it.
		s.log.WarnContext(ctx, "deleting a recording's object failed", "object", r.object, "error", err)
	}
	return nil
}
