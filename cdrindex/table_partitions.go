package cdrindex

import (
	"context"
	"fmt"
	"slices"

	"trunkline/internal/sqldb"
)

// createPartitions creates the missing partitions of months.
func (x *Index) createPartitions(ctx context.Context, months []month) error {
	if !x.db.Postgres() || x.knowsPartitions(months) {
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

func (x *Index) knowsPartitions(months []month) bool {
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
		_, err := tx.ExecContext(ctx, statement)
		if err != nil {
			return sqldb.Wrap(err, "creating a partition")
		}
	}

	return nil
}

// dropPartitions drops the tables of months.
func (x *Index) dropPartitions(ctx context.Context, tx *sqldb.BulkTx, months []month) error {
	// Waiting for a long report would block all later ones: fail and retry later.
	_, err := tx.ExecContext(ctx, `SET LOCAL lock_timeout = '2s'`)
	if err != nil {
		return sqldb.Wrap(err, "dropping partitions")
	}

	for _, m := range months {
		_, err := tx.ExecContext(ctx, `DROP TABLE `+m.partition())
		if err != nil {
			return sqldb.Wrap(err, "dropping partitions")
		}
		x.log.Info("call records deleted, retention expired", "partition", m.partition())
	}

	return nil
}
