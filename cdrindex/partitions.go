package cdrindex

import (
	"context"
	"fmt"
	"slices"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

// partitionsAhead is the number of months for which partitions are created
// ahead.
const partitionsAhead = 2

// createPartitions creates the missing partitions of months.
func (x *Index) createPartitions(ctx context.Context, months []month) error {
	if !x.db.Postgres() || x.partitionsKnown(months) {
		return nil
	}
	err := x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		if err := lockPartitions(ctx, tx); err != nil {
			return err
		}
		existing, err := listPartitions(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range months {
			if slices.Contains(existing, m) {
				continue
			}
			if err := createPartition(ctx, tx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("creating partitions: %w", err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, m := range months {
		x.knownPartitions[m] = true
	}
	return nil
}

func (x *Index) partitionsKnown(months []month) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !slices.ContainsFunc(months, func(m month) bool { return !x.knownPartitions[m] })
}

// clearKnownPartitions makes createPartitions query the database again: another
// node may have dropped a partition.
func (x *Index) clearKnownPartitions() {
	x.mu.Lock()
	defer x.mu.Unlock()
	clear(x.knownPartitions)
}

// lockPartitions holds an advisory lock until the transaction ends.
func lockPartitions(ctx context.Context, tx *sqldb.BulkTx) error {
	_, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('trunkline/cdrindex/partitions', 0))`)
	return sqldb.Wrap(err, "waiting for another node's partitions")
}

func listPartitions(ctx context.Context, tx *sqldb.BulkTx) ([]month, error) {
	rows, err := tx.QueryContext(ctx, `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = '`+rowsTable+`'::regclass`)
	tables, err := sqldb.Collect(rows, err, "listing partitions", sqldb.ScanColumn[string])
	var all []month
	for _, table := range tables {
		if m, ok := parsePartition(table); ok {
			all = append(all, m)
		}
	}
	return all, err
}

// createPartition creates a table and attaches it. CREATE TABLE … PARTITION OF would
// wait for every running report and block all later ones.
func createPartition(ctx context.Context, tx *sqldb.BulkTx, m month) error {
	for _, statement := range []string{
		fmt.Sprintf(`CREATE TABLE %s (LIKE %s INCLUDING ALL EXCLUDING INDEXES)`, m.partition(), rowsTable),
		fmt.Sprintf(`ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%d) TO (%d)`,
			rowsTable, m.partition(), m.start(), (m + 1).start()),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return sqldb.Wrap(err, "creating a partition")
		}
	}
	return nil
}

// firstKept returns the first month within retention, 0 without retention.
func (x *Index) firstKept(now time.Time) month {
	if x.settings.RetentionMonths == 0 {
		return 0
	}
	return monthOf(now.Unix()) - month(x.settings.RetentionMonths)
}

// deleteBefore deletes the calls that began before the first kept month.
func (x *Index) deleteBefore(ctx context.Context, kept month) error {
	tables := []string{callsTable, rowsTable}
	if x.db.Postgres() {
		tables = tables[:1]
	}
	err := x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		for _, table := range tables {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE started < $1`, kept.start()); err != nil {
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
		return x.dropPartitions(ctx, tx, slices.DeleteFunc(existing, func(m month) bool { return m >= kept }))
	})
}

func (x *Index) dropPartitions(ctx context.Context, tx *sqldb.BulkTx, months []month) error {
	// Waiting for a long report would block all later ones: fail and retry later.
	if _, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '2s'`); err != nil {
		return sqldb.Wrap(err, "dropping partitions")
	}
	for _, m := range months {
		if _, err := tx.ExecContext(ctx, `DROP TABLE `+m.partition()); err != nil {
			return sqldb.Wrap(err, "dropping partitions")
		}
		x.log.Info("call records deleted, retention expired", "partition", m.partition())
	}
	return nil
}

// runRetention creates the tables of coming months and drops those whose retention has
// ended, until ctx ends.
func (x *Index) runRetention(ctx context.Context) {
	const every = 10 * time.Minute
	done := month(-1)
	for {
		wait := every
		now, err := time.Now(), error(nil)
		if current := monthOf(now.Unix()); current != done {
			if err = x.maintainPartitions(ctx, now); err == nil {
				done = current
			}
		}
		if err != nil && ctx.Err() == nil {
			wait = time.Minute / 2
			x.metrics.errors.WithLabelValues(failedRetention).Inc()
			x.log.Warn("call record retention failed", "error", err)
		}
		if !retry.Sleep(ctx, wait) {
			return
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
	if kept := x.firstKept(now); kept > 0 {
		return x.deleteBefore(ctx, kept)
	}
	return nil
}
