package recording

import (
	"context"
	"strings"
	"time"

	"trunkline/audit"
	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/recording/envelope"
)

// row is a recording's row: its metadata and internal columns.
type row struct {
	Metadata
	createdAt     int64  // Unix milliseconds
	object        string // name in the Store
	announceAfter int64  // of a new one, Unix milliseconds
	completeAfter *int64 // of a new one, Unix milliseconds; nil: its call's record has nothing to add
}

// rows is the table of recordings.
type rows struct {
	db    *sqldb.DB
	audit *audit.Log
}

// rowColumns are those that scanRow scans, in its order.
const rowColumns = `account_id, recording_id, encrypted, key_id, key_version, algorithm, salt, size, stored_size,
	digest, content_type, created_at, object, call_id, interaction_id, origination_call_id, agent_id, queue_id, direction,
	started_at, duration_ms, channels, pauses, expires_at, hold_reason, held_at`

func scanRow(scan sqldb.ScanFunc) (*row, error) {
	r := new(row)
	var paused string
	var held Hold
	err := scan(&r.AccountID, &r.RecordingID, &r.Encrypted, &r.KeyID, &r.KeyVersion, &r.Algorithm, &r.Salt,
		&r.Size, &r.StoredSize, &r.Digest, &r.ContentType, &r.createdAt, &r.object,
		&r.CallID, &r.InteractionID, &r.OriginationCallID, &r.AgentID, &r.QueueID, &r.Direction,
		&r.StartedAt, &r.DurationMS, &r.Channels, &paused, &r.ExpiresAt, &held.Reason, &held.Since)
	if err != nil {
		return nil, err
	}

	r.CreatedAt = r.createdAt / 1000
	if held.Reason != "" {
		r.Hold = &held
	}

	r.Pauses, err = parsePauses(paused)
	return r, err
}

// create stores the row, with its entry of the audit log.
func (t rows) create(ctx context.Context, r *row) error {
	entry := t.audit.Entry(ctx, audit.RecordingStore, r.AccountID, auditTarget(r.RecordingID))
	paused, err := pauses(r.Pauses).text()
	if err != nil {
		return fault.Internal(err, "writing the pauses failed")
	}

	err = audit.Tx(ctx, t.audit, t.db.BulkTx, &entry, func(tx *sqldb.BulkTx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO recordings (`+rowColumns+`, announce_after, complete_after)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
				'', 0, $25, $26)`,
			r.AccountID, r.RecordingID, r.Encrypted, r.KeyID, r.KeyVersion, r.Algorithm, r.Salt,
			r.Size, r.StoredSize, r.Digest, r.ContentType, r.createdAt, r.object,
			r.CallID, r.InteractionID, r.OriginationCallID, r.AgentID, r.QueueID, r.Direction,
			r.StartedAt, r.DurationMS, r.Channels, paused, r.ExpiresAt, r.announceAfter, r.completeAfter)
		if sqldb.IsUniqueViolation(err) {
			return errExists(r.RecordingID)
		}

		return err
	})

	return sqldb.Wrap(err, "storing the recording's metadata")
}

func (t rows) find(ctx context.Context, accountID, recordingID string) (*row, error) {
	found := t.db.QueryRowContext(ctx, `SELECT `+rowColumns+` FROM recordings WHERE account_id = $1 AND recording_id = $2`,
		accountID, recordingID)
	return sqldb.Find(found, noRecording(recordingID), "reading a recording's metadata", scanRow)
}

func noRecording(id string) error {
	if !envelope.ValidID(id) {
		return fault.NotFound("there is no such recording")
	}
	return fault.NotFound("there is no recording %s", id)
}

func (t rows) exists(ctx context.Context, accountID, recordingID string) (bool, error) {
	_, err := t.find(ctx, accountID, recordingID)
	if fault.KindOf(err) == fault.KindNotFound {
		return false, nil
	}
	return err == nil, err
}

// isReferenced reports whether a row refers to the object.
func (t rows) isReferenced(ctx context.Context, object string) (referenced bool, err error) {
	err = t.db.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM recordings WHERE object = $1)`,
		object).Scan(&referenced)
	return referenced, sqldb.Wrap(err, "looking for an object's recording")
}

// deleteRow deletes the row and returns it, with an entry of the audit log. Returns
// fault.KindConflict for a recording with a legal hold.
func (t rows) deleteRow(ctx context.Context, action audit.Action, accountID, recordingID string) (r *row, err error) {
	entry := t.audit.Entry(ctx, action, accountID, auditTarget(recordingID))
	err = audit.Tx(ctx, t.audit, t.db.BulkTx, &entry, func(tx *sqldb.BulkTx) (err error) {
		deleted := tx.QueryRowContext(ctx,
			`DELETE FROM recordings WHERE account_id = $1 AND recording_id = $2 AND hold_reason = ''
			RETURNING `+rowColumns, accountID, recordingID)
		r, err = sqldb.Find(deleted, noRecording(recordingID), "deleting a recording's metadata", scanRow)
		if fault.KindOf(err) != fault.KindNotFound {
			return err
		}

		// In the same transaction: is it not there, or held?
		found := tx.QueryRowContext(ctx,
			`SELECT recording_id FROM recordings WHERE account_id = $1 AND recording_id = $2`, accountID, recordingID)
		_, lookErr := sqldb.Find(found, err, "looking for a recording", sqldb.ScanColumn[string])
		if lookErr != nil {
			return lookErr
		}

		return errHeld(recordingID)
	})

	return r, err
}

// replaceObject updates the row to refer to another object and its key. It returns false
// if the row was deleted or refers to another object than from.
func (t rows) replaceObject(ctx context.Context, from, to *row) (replaced bool, err error) {
	rows, err := t.db.ExecWithoutTx(ctx,
		`UPDATE recordings SET key_id = $1, key_version = $2, algorithm = $3, salt = $4,
		stored_size = $5, object = $6 WHERE account_id = $7 AND recording_id = $8 AND object = $9`,
		to.KeyID, to.KeyVersion, to.Algorithm, to.Salt, to.StoredSize, to.object, from.AccountID, from.RecordingID,
		from.object)
	return rows == 1, sqldb.Wrap(err, "replacing a recording's object")
}

// sealedAccounts returns the accounts that have sealed recordings: only accountID, or all
// of them for "".
func (t rows) sealedAccounts(ctx context.Context, accountID string) ([]string, error) {
	found, err := t.db.QueryContext(ctx, `SELECT DISTINCT account_id FROM recordings
		WHERE encrypted AND ($1 = '' OR account_id = $1) ORDER BY account_id`, accountID)
	return sqldb.Collect(found, err, "listing accounts with sealed recordings", sqldb.ScanColumn[string])
}

// countOutdated returns the number of sealed recordings with another key or algorithm
// than the current ones.
func (t rows) countOutdated(ctx context.Context, account string, current encryption.Sealing) (n int, err error) {
	err = t.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM recordings WHERE account_id = $1 AND encrypted
		AND (key_version <> $2 OR algorithm <> $3)`, account, current.Key.Version, current.Algorithm).Scan(&n)
	return n, sqldb.Wrap(err, "counting recordings with an old key or algorithm")
}

// selectRows returns the rows of a query.
func (t rows) selectRows(ctx context.Context, query string, args ...any) ([]*row, error) {
	found, err := t.db.QueryContext(ctx, `SELECT `+rowColumns+` FROM recordings `+query, args...)
	return sqldb.Collect(found, err, "listing recordings", scanRow)
}

// The columns with the times at which something is due for a recording.
const (
	dueAnnouncement = "announce_after"
	dueCompletion   = "complete_after" // a look for its call's record
)

// lease returns up to limit recordings for which something is due, the longest overdue first, and defers it by
// the lease: other nodes do not take them before that.
func (t rows) lease(ctx context.Context, due string, now time.Time, lease time.Duration,
	limit int) (leased []*row, err error) {
	err = t.db.WithoutTx(ctx, func(tx sqldb.Runner) error {
		result, err := tx.QueryContext(ctx, strings.ReplaceAll(`UPDATE recordings SET DUE = $1 WHERE DUE <= $2
			AND (account_id, recording_id) IN (SELECT account_id, recording_id FROM recordings
				WHERE DUE <= $2 ORDER BY DUE LIMIT $3) RETURNING `, "DUE", due)+rowColumns,
			now.Add(lease).UnixMilli(), now.UnixMilli(), limit)
		leased, err = sqldb.Collect(result, err, "looking for recordings with "+due, scanRow)
		return err
	})
	return leased, err
}

func (t rows) markAnnounced(ctx context.Context, r *row) error {
	_, err := t.db.ExecWithoutTx(ctx, `UPDATE recordings SET announce_after = NULL
		WHERE account_id = $1 AND recording_id = $2 AND created_at = $3`, r.AccountID, r.RecordingID, r.createdAt)
	return sqldb.Wrap(err, "storing that a recording was announced")
}
