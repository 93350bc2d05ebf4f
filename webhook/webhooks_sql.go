package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
)

const webhooksTable = "webhooks" // authenticated with every sealed key

// webhookRow is a webhook in the database.
type webhookRow struct {
	Webhook
	sealedKey          string
	retries            int64 // incremented by Retry and Update
	positionGeneration int64 // incremented by a Retry that moves the positions
}

const webhookColumns = `id, account_id, url, filters, format, sealed, created_at, updated_at, retries, seek,
	failures, last_error, failed_at, next_try_at, paused_at`

func scanRow(scan sqldb.ScanFunc) (r webhookRow, err error) {
	var filters string
	var created, updated, failed, next, paused int64
	err = scan(&r.ID, &r.AccountID, &r.URL, &filters, &r.Format, &r.sealedKey, &created, &updated, &r.retries,
		&r.positionGeneration,
		&r.Failures, &r.LastError, &failed, &next, &paused)
	if err != nil {
		return webhookRow{}, err
	}

	r.CreatedAt, r.UpdatedAt = time.UnixMilli(created), time.UnixMilli(updated)
	r.FailedAt, r.NextTryAt, r.PausedAt = timeFromMilli(failed), timeFromMilli(next), timeFromMilli(paused)
	switch {
	case paused != 0:
		r.Status = StatusPaused
	case r.Failures > 0:
		r.Status = StatusFailing
	default:
		r.Status = StatusActive
	}

	if err := json.Unmarshal([]byte(filters), &r.Filters); err != nil {
		return webhookRow{}, fmt.Errorf("filters of webhook %s: %w", r.ID, err)
	}

	return r, nil
}

// timeFromMilli returns the time of Unix milliseconds; 0 is the zero time.
func timeFromMilli(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli)
}

// milliFromTime returns Unix milliseconds, 0 for the zero time.
func milliFromTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// selectRow returns a webhook of the account.
func selectRow(ctx context.Context, q sqldb.Runner, accountID, id string) (webhookRow, error) {
	found := q.QueryRowContext(ctx, `SELECT `+webhookColumns+` FROM webhooks WHERE id = $1 AND account_id = $2`, id, accountID)
	return sqldb.Find(found, fault.NotFound("Webhook not found"), "reading a webhook", scanRow)
}

// selectRows returns the webhooks of the account, the oldest first; of all accounts for "".
func selectRows(ctx context.Context, q sqldb.Runner, accountID string) ([]webhookRow, error) {
	rows, err := q.QueryContext(ctx,
		`SELECT `+webhookColumns+` FROM webhooks WHERE account_id = $1 OR $1 = '' ORDER BY created_at, id`, accountID)
	return sqldb.Collect(rows, err, "reading the webhooks", scanRow)
}

// insertRow stores a new webhook.
func insertRow(ctx context.Context, tx sqldb.Runner, r webhookRow) error {
	filters, err := json.Marshal(r.Filters)
	if err != nil {
		return fmt.Errorf("encoding filters: %w", err)
	}

	_, err = tx.ExecContext(ctx,
		`INSERT INTO webhooks (id, account_id, url, filters, format, sealed, master_key_id, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8)`, r.ID, r.AccountID, r.URL, string(filters), string(r.Format),
		r.sealedKey, masterkey.KeyID(r.sealedKey),
		r.CreatedAt.UnixMilli())

	return sqldb.Wrap(err, "storing a webhook")
}

// updateRow stores the config of a webhook and resets the back-off.
func updateRow(ctx context.Context, tx sqldb.Runner, r webhookRow) error {
	filters, err := json.Marshal(r.Filters)
	if err != nil {
		return fmt.Errorf("encoding filters: %w", err)
	}

	_, err = tx.ExecContext(ctx,
		`UPDATE webhooks SET url = $1, filters = $2, format = $3, sealed = $4, master_key_id = $5, updated_at = $6,
		retries = retries + 1, failures = 0, next_try_at = 0 WHERE id = $7`,
		r.URL, string(filters), string(r.Format), r.sealedKey, masterkey.KeyID(r.sealedKey), r.UpdatedAt.UnixMilli(),
		r.ID)

	return sqldb.Wrap(err, "storing a webhook")
}

// deleteRow deletes a webhook with its positions.
func deleteRow(ctx context.Context, tx sqldb.Runner, id string) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM webhooks WHERE id = $1`, id)
	return sqldb.Wrap(err, "deleting a webhook")
}

// resetDelivery ends a pause and the back-off. If movePositions is true, it also replaces
// the positions.
func resetDelivery(ctx context.Context, tx sqldb.Runner, id string, positions []deliveryPosition,
	movePositions bool) error {
	increment := 0
	if movePositions {
		increment = 1
	}

	var generation int64
	err := tx.QueryRowContext(ctx,
		`UPDATE webhooks SET retries = retries + 1, seek = seek + $2, failures = 0, last_error = '', failed_at = 0,
		next_try_at = 0, paused_at = 0 WHERE id = $1 RETURNING seek`, id, increment).Scan(&generation)
	if err != nil || !movePositions {
		return sqldb.Wrap(err, "resuming a webhook")
	}

	return upsertPositions(ctx, tx, id, generation, positions)
}

// incrementRevision increments the revision that nodes poll for changes of webhooks.
func incrementRevision(ctx context.Context, tx sqldb.Runner) error {
	_, err := tx.ExecContext(ctx, `UPDATE webhook_revision SET revision = revision + 1`)
	return sqldb.Wrap(err, "incrementing the revision of webhooks")
}

func readRevision(ctx context.Context, q sqldb.Runner) (revision int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT revision FROM webhook_revision`).Scan(&revision)
	return revision, sqldb.Wrap(err, "reading the revision of webhooks")
}

// storeFailure stores the failure that the API shows, unless the webhook was retried since
// the attempt.
func storeFailure(ctx context.Context, q sqldb.Runner, id string, retries int64, failures int, message string,
	now, next time.Time) error {
	_, err := q.ExecContext(ctx, `UPDATE webhooks SET failures = $3, last_error = $4, failed_at = $5, next_try_at = $6
		WHERE id = $1 AND retries = $2 AND paused_at = 0`, id, retries, failures, message, milliFromTime(now),
		milliFromTime(next))
	return sqldb.Wrap(err, "storing a webhook's failure")
}

// storeRecovery stores that an attempt succeeded after failures.
func storeRecovery(ctx context.Context, q sqldb.Runner, id string, retries int64) error {
	_, err := q.ExecContext(ctx,
		`UPDATE webhooks SET failures = 0, next_try_at = 0 WHERE id = $1 AND retries = $2 AND paused_at = 0`, id,
		retries)
	return sqldb.Wrap(err, "storing a webhook's recovery")
}

// storePause stores that the webhook is paused and returns true, unless it was retried or
// paused since the attempt.
func storePause(ctx context.Context, tx sqldb.Runner, id string, retries int64, failures int, message string,
	now time.Time) (bool, error) {
	n, err := sqldb.Exec(ctx, tx,
		`UPDATE webhooks SET failures = $3, last_error = $4, failed_at = $5, next_try_at = 0, paused_at = $5
		WHERE id = $1 AND retries = $2 AND paused_at = 0`, id, retries, failures, message, now.UnixMilli())
	if err != nil || n == 0 {
		return false, sqldb.Wrap(err, "pausing a webhook")
	}
	return true, incrementRevision(ctx, tx)
}
