package audit

import (
	"cmp"
	"context"
	"slices"

	"trunkline/internal/sqldb"
)

const (
	chainBatchEntries = 1000 // moved in one transaction
	maxBatchesPerCall = 100  // in one call of ChainPending or publishChain, so that Run does its other work too
)

var chainColumns = []string{"seq", "id", "at", "account_id", "actor", "address", "action", "target", "outcome", "prev",
	"hash"}

// ChainPending moves the pending entries into the chain.
func (l *Log) ChainPending(ctx context.Context) error {
	for range maxBatchesPerCall {
		var pending int
		err := l.db.QueryRowContext(ctx, `SELECT COUNT(*) FROM audit_pending`).Scan(&pending)
		if err != nil {
			return sqldb.Wrap(err, "counting pending audit entries")
		}

		l.metrics.pending.Set(float64(pending))
		if pending == 0 {
			return nil
		}

		chained, err := l.chainBatch(ctx)
		if err != nil {
			return err
		}

		for _, e := range chained {
			if e.isCLI() {
				l.logEntry(ctx, e.Entry, true)
			}
		}
	}

	// More may be pending: Run goes on with it after its other work.
	l.wakeChain()
	return nil
}

// chainBatch moves the oldest pending entries into the chain.
func (l *Log) chainBatch(ctx context.Context) (chained []ChainEntry, err error) {
	err = l.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		h, err := lockHead(ctx, tx)
		if err != nil {
			return err
		}

		rows, err := tx.QueryContext(ctx, `DELETE FROM audit_pending WHERE id IN
			(SELECT id FROM audit_pending ORDER BY at, id LIMIT $1) RETURNING `+entryColumns, chainBatchEntries)
		chained, err = sqldb.Collect(rows, err, "taking pending audit entries",
			func(scan sqldb.ScanFunc) (ChainEntry, error) {
				e, err := scanEntry(scan)
				return ChainEntry{Entry: e}, err
			})
		if err != nil || len(chained) == 0 {
			return err
		}

		// RETURNING has no order.
		slices.SortFunc(chained,
			func(a, b ChainEntry) int { return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.ID, b.ID)) })
		for i := range chained {
			c := &chained[i]
			h.seq++
			c.Seq, c.Prev = h.seq, h.hash
			c.Hash = c.computeHash()
			h.hash = c.Hash
		}

		err = tx.CopyIn(ctx, "audit_entries", chainColumns, len(chained), func(i int) []any {
			c := &chained[i]
			return []any{c.Seq, c.ID, c.At.UnixMilli(), c.AccountID, c.Actor, c.Address, string(c.Action), c.Target,
				c.Outcome, c.Prev, c.Hash}
		})
		if err != nil {
			return sqldb.Wrap(err, "extending the audit log's chain")
		}

		_, err = tx.ExecContext(ctx, `UPDATE audit_chain SET seq = $1, hash = $2 WHERE id = 1`, h.seq, h.hash)
		return sqldb.Wrap(err, "moving the audit log's head")
	})

	return chained, err
}
