package cdrindex

import (
	"context"
	"slices"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

// partitionsAhead is the number of months for which partitions are created
// ahead.
const partitionsAhead = 2

// firstRetained returns the first month within retention, 0 without retention.
func (x *Index) firstRetained(now time.Time) month {
	if x.settings.RetentionMonths == 0 {
		return 0
	}
	return monthOf(now.Unix()) - month(x.settings.RetentionMonths)
}

// deleteBefore deletes the calls that began before the first kept month.
func (x *Index) deleteBefore(ctx context.Context, firstKept month) error {
	tables := []string{callsTable, rowsTable}
	// PostgreSQL drops the rows with their month's table, in the second transaction.
	if x.db.Postgres() {
		tables = tables[:1]
	}

	// Two transactions: other nodes do not wait for a partition while calls are deleted.
	err := x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		for _, table := range tables {
			_, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE started < $1`, firstKept.start())
			if err != nil {
				return sqldb.Wrap(err, "dropping old calls")
			}
		}

		return nil
	})
	if err != nil || !x.db.Postgres() {
		return err
	}

	return x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		if err := lockPartitions(ctx, tx); err != nil {
			return err
		}

		existing, err := listPartitions(ctx, tx)
		if err != nil {
			return err
		}

		return x.dropPartitions(ctx, tx, slices.DeleteFunc(existing, func(m month) bool { return m >= firstKept }))
	})
}

// runRetention creates the tables of coming months and drops those whose retention has
// ended, once a month, until ctx ends. It repeats what failed.
func (x *Index) runRetention(ctx context.Context) {
	maintained := month(-1)
	for now := range retry.Rounds(ctx, time.Minute/2) {
		current := monthOf(now.Unix())
		if current == maintained {
			continue
		}

		err := x.maintainPartitions(ctx, now)
		switch {
		case err == nil:
			maintained = current
		case ctx.Err() == nil:
			x.metrics.errors.WithLabelValues(failedRetention).Inc()
			x.log.Warn("call record retention failed", "error", err)
		}
	}
}

// maintainPartitions creates the tables of this month and the next ones and drops
// old ones.
func (x *Index) maintainPartitions(ctx context.Context, now time.Time) error {
	current := monthOf(now.Unix())
	var months []month
	for m := current; m <= current+partitionsAhead; m++ {
		months = append(months, m)
	}

	if err := x.createPartitions(ctx, months); err != nil {
		return err
	}

	firstKept := x.firstRetained(now)
	if firstKept > 0 {
		return x.deleteBefore(ctx, firstKept)
	}

	return nil
}
