package identity

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

// Eraser deletes one package's data of deleted accounts.
type Eraser struct {
	Kind string // of data, such as "recordings", for errors and logs
	// Erase deletes a bounded number of the account's objects and returns the number, 0 if
	// none is left.
	Erase func(ctx context.Context, accountID string) (n int, err error)
}

// Purge deletes the data of deleted accounts in other packages.
type Purge struct {
	directory *Directory
	after     time.Duration
	erasers   []Eraser
	log       *slog.Logger
}

// NewPurge returns a Purge that runs the erasers in their order.
func NewPurge(d *Directory, settings AccountSettings, erasers []Eraser, log *slog.Logger) *Purge {
	return &Purge{directory: d, after: settings.PurgeAfter, erasers: erasers, log: log}
}

const (
	purgeInterval   = time.Minute
	purgeLeaseTime  = 2 * time.Minute // renewed after each call of an Eraser
	purgeAgainAfter = 24 * time.Hour  // for data stored late, such as records that were still in Kafka
	// purgeAgainShare is the part of the time since the account's retention ended that passes before it is
	// purged again: a day in the first ten days, then more and more. It never ends, since a rebuild
	// from an old log brings rows back.
	purgeAgainShare  = 10
	purgeLogInterval = 10 * time.Second
)

// Run purges the accounts that are due until ctx ends. Failures are logged and retried.
func (p *Purge) Run(ctx context.Context) error {
	for range retry.Rounds(ctx, purgeInterval) {
		err := p.RunDue(ctx)
		if err != nil && ctx.Err() == nil {
			p.log.WarnContext(ctx, "purging deleted accounts failed, retrying", "error", err)
		}
	}
	return nil
}

// RunDue purges the accounts whose retention has ended, and again those that were purged before, after
// purgeAgainAfter and a purgeAgainShare of the time that had passed by then. It skips accounts that another
// process is purging.
func (p *Purge) RunDue(ctx context.Context) error {
	now := p.directory.cfg.Now()

	rows, err := p.directory.db.QueryContext(ctx, `SELECT id FROM identity_deleted_accounts WHERE lease_until <= $1 AND
		(purged_at IS NULL AND (purge_now OR deleted_at <= $2) OR
		purged_at <= $3 AND purged_at + (purged_at - deleted_at - $4) / $5 <= $1) ORDER BY deleted_at, id`,
		now.UnixMilli(), now.Add(-p.after).UnixMilli(), now.Add(-purgeAgainAfter).UnixMilli(), p.after.Milliseconds(),
		purgeAgainShare)
	due, err := sqldb.Collect(rows, err, "reading deleted accounts", sqldb.ScanColumn[string])
	if err != nil {
		return err
	}

	var failures []error
	for _, id := range due {
		if err := p.eraseAccount(ctx, id); err != nil {
			failures = append(failures, fmt.Errorf("account %s: %w", id, err))
		}
	}

	return errors.Join(failures...)
}

// ListDeletedAccounts returns the ids of all deleted accounts. An id is never used
// again.
func (d *Directory) ListDeletedAccounts(ctx context.Context) ([]string, error) {
	rows, err := d.db.QueryContext(ctx, `SELECT id FROM identity_deleted_accounts`)
	return sqldb.Collect(rows, err, "listing deleted accounts", sqldb.ScanColumn[string])
}

// RunNow purges a deleted account without waiting. It can be interrupted and repeated at
// any time; a running server continues it. Returns fault.KindNotFound for an account
// that is not deleted.
func (p *Purge) RunNow(ctx context.Context, id string) error {
	marked, err := sqldb.Exec(ctx, p.directory.db,
		`UPDATE identity_deleted_accounts SET purge_now = TRUE, lease_until = 0 WHERE id = $1`, id)
	if err != nil {
		return sqldb.Wrap(err, "marking an account for its purge")
	}

	if marked == 0 {
		return fault.NotFound("There is no deleted account %s", quote(id))
	}

	return p.eraseAccount(ctx, id)
}

// eraseAccount deletes the data of one account. The next call continues an interrupted purge, because
// each deletion is committed.
func (p *Purge) eraseAccount(ctx context.Context, id string) error {
	acquired, err := p.acquireLease(ctx, id)
	if err != nil || !acquired {
		return err
	}

	total, reported := 0, time.Now()
	for _, eraser := range p.erasers {
		for {
			n, err := eraser.Erase(ctx, id)
			if err != nil {
				// The lease is kept: its end is when the purge is tried again.
				return fmt.Errorf("purging %s: %w", eraser.Kind, err)
			}

			if n == 0 {
				break
			}

			total += n
			if time.Since(reported) >= purgeLogInterval {
				reported = time.Now()
				p.log.InfoContext(ctx, "purging a deleted account", "account_id", id, "kind", eraser.Kind,
					"deleted", total)
			}

			if err := p.renewLease(ctx, id); err != nil {
				return err
			}
		}
	}

	return p.markPurged(ctx, id, total)
}

// acquireLease acquires the account's lease. It returns false if another process has it.
func (p *Purge) acquireLease(ctx context.Context, id string) (acquired bool, err error) {
	now := p.directory.cfg.Now()
	rows, err := sqldb.Exec(ctx, p.directory.db,
		`UPDATE identity_deleted_accounts SET lease_until = $1 WHERE id = $2 AND lease_until <= $3`,
		now.Add(purgeLeaseTime).UnixMilli(), id, now.UnixMilli())
	return rows == 1, sqldb.Wrap(err, "claiming a purge")
}

func (p *Purge) renewLease(ctx context.Context, id string) error {
	_, err := p.directory.db.ExecContext(ctx, `UPDATE identity_deleted_accounts SET lease_until = $1 WHERE id = $2`,
		p.directory.cfg.Now().Add(purgeLeaseTime).UnixMilli(), id)
	return sqldb.Wrap(err, "renewing a purge's lease")
}

// markPurged marks the account as purged; the first time it also writes an audit entry.
func (p *Purge) markPurged(ctx context.Context, id string, total int) error {
	d := p.directory
	entry := d.audit.Entry(ctx, audit.AccountDelete, "", "account:"+id)
	entry.Outcome = "purged"

	var again bool
	err := d.db.Tx(ctx, func(tx *sql.Tx) error {
		var previous sql.NullInt64
		err := tx.QueryRowContext(ctx, `SELECT audited_by, purged_at FROM identity_deleted_accounts WHERE id = $1`, id).
			Scan(&entry.AccountID, &previous)
		if err != nil {
			return sqldb.Wrap(err, "reading a deleted account")
		}

		_, err = tx.ExecContext(ctx,
			`UPDATE identity_deleted_accounts SET purged_at = $1, purge_now = FALSE, lease_until = 0 WHERE id = $2`,
			d.cfg.storedNow().UnixMilli(), id)
		again = previous.Valid
		if err != nil || again {
			return sqldb.Wrap(err, "noting a purge")
		}

		return d.audit.Insert(ctx, tx, entry)
	})
	if err != nil {
		return err
	}

	if !again {
		d.audit.AfterCommit(ctx, entry)
	}
	if !again || total > 0 {
		p.log.InfoContext(ctx, "deleted account purged", "account_id", id, "deleted", total)
	}

	return nil
}
