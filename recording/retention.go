package recording

import (
	"context"
	"fmt"
	"time"

	"trunkline/audit"
	"trunkline/config/callrecording"
	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// Policies finds the policy of an account.
type Policies interface {
	// Policy returns the policy that holds for an account, the zero value where there is none.
	Policy(ctx context.Context, accountID string) (callrecording.Policy, error)
}

// setExpiry sets when a recording is deleted by the policy of its account and queue.
func (s *Service) setExpiry(ctx context.Context, r *row) error {
	if s.policies == nil {
		return nil
	}
	policy, err := s.policies.Policy(ctx, r.AccountID)
	if err != nil {
		return err
	}
	r.ExpiresAt = policy.ExpiresAt(r.CreatedAt, r.QueueID)
	return nil
}

// maxHoldReasonLength bounds the reason of a legal hold, in bytes.
const maxHoldReasonLength = 500

// Hold puts a legal hold on a recording: until EndHold nothing deletes it. A later Hold changes the
// reason.
func (s *Service) Hold(ctx context.Context, accountID, recordingID, reason string) (*Metadata, error) {
	if reason == "" || len(reason) > maxHoldReasonLength || !report.Storable(reason) {
		return nil, fault.InvalidField("reason", "invalid",
			fmt.Sprintf("reason must have 1 to %d bytes of text", maxHoldReasonLength))
	}
	return s.rows.setHold(ctx, audit.RecordingHold, accountID, recordingID, Hold{reason, time.Now().Unix()})
}

// EndHold ends the legal hold of a recording, if it has one.
func (s *Service) EndHold(ctx context.Context, accountID, recordingID string) error {
	_, err := s.rows.setHold(ctx, audit.RecordingRelease, accountID, recordingID, Hold{})
	return err
}

// setHold sets the hold of a recording, with an entry of the audit log.
func (t rows) setHold(ctx context.Context, action audit.Action, accountID, recordingID string,
	hold Hold) (m *Metadata, err error) {
	entry := t.audit.Entry(ctx, action, accountID, auditTarget(recordingID))
	err = audit.Tx(ctx, t.audit, t.db.BulkTx, &entry, func(tx *sqldb.BulkTx) error {
		updated := tx.QueryRowContext(ctx, `UPDATE recordings SET hold_reason = $1, held_at = $2
			WHERE account_id = $3 AND recording_id = $4 RETURNING `+rowColumns, hold.Reason, hold.Since, accountID,
			recordingID)
		r, err := sqldb.Find(updated, noRecording(recordingID), "setting the hold of a recording", scanRow)
		if err == nil {
			m = &r.Metadata
		}

		return err
	})

	return m, err
}

// errHeld returns the error of deleting a recording that has a legal hold.
func errHeld(recordingID string) error {
	return fault.Conflict("the recording %s has a legal hold and is not deleted", recordingID)
}

const expiryBatch = 100

// DeleteExpired deletes the recordings whose retention has ended, but those with a legal hold.
func (s *Service) DeleteExpired(ctx context.Context, now time.Time) error {
	for {
		due, err := s.rows.selectRows(ctx, `WHERE expires_at <> 0 AND expires_at <= $1 AND hold_reason = ''
			ORDER BY expires_at LIMIT $2`, now.Unix(), expiryBatch)
		if err != nil || len(due) == 0 {
			return err
		}

		for _, r := range due {
			err := s.deleteAs(ctx, audit.RecordingExpire, r.AccountID, r.RecordingID)
			kind := fault.KindOf(err)
			if err != nil && kind != fault.KindNotFound && kind != fault.KindConflict { // deleted or held meanwhile
				return err
			}
		}

		if len(due) < expiryBatch {
			return nil
		}
	}
}
