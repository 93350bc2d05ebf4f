package audit

import (
	"context"

	"trunkline/internal/sqldb"
)

const (
	pruneBatch      = 5000 // entries deleted in one transaction
	maxPruneBatches = 200  // transactions in one call of Prune
)

// Prune deletes the oldest entries of the chain whose retention has ended. It stores the
// hash of the last deleted entry, at which Verify begins.
func (l *Log) Prune(ctx context.Context) error {
	before := l.now().Add(-l.retention).UnixMilli()
	for range maxPruneBatches {
		n, err := l.pruneBatch(ctx, before)
		if err != nil {
			return err
		}
		if n < pruneBatch {
			return nil
		}
	}
	return nil
}

// pruneBatch deletes entries up to the first that has not expired. The chain is ordered by
// time, except for entries recorded at almost the same time.
func (l *Log) pruneBatch(ctx context.Context, before int64) (n int64, err error) {
	err = l.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		h, err := lockHead(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, `SELECT seq, at, hash FROM audit_entries ORDER BY seq LIMIT $1`, pruneBatch)
		last := h.lastPruned()
		reachedKept := false
		_, err = sqldb.Collect(rows, err, "reading old audit entries", func(scan sqldb.ScanFunc) (struct{}, error) {
			var entry chainLink
			var at int64
			err := scan(&entry.seq, &at, &entry.hash)
			if reachedKept = reachedKept || at >= before || entry.seq != last.seq+1; !reachedKept {
				last = entry
			}
			return struct{}{}, err
		})
		if n = last.seq - h.prunedSeq; err != nil || n == 0 {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM audit_entries WHERE seq <= $1`, last.seq); err != nil {
			return sqldb.Wrap(err, "deleting old audit entries")
		}
		_, err = tx.ExecContext(ctx, `UPDATE audit_chain SET pruned_seq = $1, pruned_hash = $2 WHERE id = 1`, last.seq, last.hash)
		return sqldb.Wrap(err, "moving the audit log's beginning")
	})
	if err == nil && n > 0 {
		l.log.InfoContext(ctx, "old audit entries deleted", "entries", n)
	}
	return n, err
}
