package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"trunkline/internal/sqldb"
)

const (
	pruneBatchEntries = 5000 // entries deleted in one transaction
	maxPruneBatches   = 200  // transactions in one call of Prune
)

// Prune deletes the oldest entries of the chain whose retention has ended. It stores the
// hash of the last deleted entry, at which Verify begins, and an entry that says what was
// deleted.
func (l *Log) Prune(ctx context.Context) error {
	before := l.now().Add(-l.settings.Retention).UnixMilli()
	for range maxPruneBatches {
		n, err := l.pruneBatch(ctx, before)
		if err != nil {
			return err
		}

		if n < pruneBatchEntries {
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

		rows, err := tx.QueryContext(ctx, `SELECT seq, at, hash FROM audit_entries ORDER BY seq LIMIT $1`, pruneBatchEntries)
		last := h.lastPruned()

		newest := int64(0) // time of the newest entry to delete
		reachedKept := false
		_, err = sqldb.Collect(rows, err, "reading old audit entries", func(scan sqldb.ScanFunc) (struct{}, error) {
			var entry chainLink
			var at int64
			err := scan(&entry.seq, &at, &entry.hash)
			// A missing entry ends the batch too: once those behind it were deleted, Verify would not find it.
			reachedKept = reachedKept || at >= before || entry.seq != last.seq+1
			if !reachedKept {
				last, newest = entry, max(newest, at)
			}

			return struct{}{}, err
		})

		n = last.seq - h.prunedSeq
		if err != nil || n == 0 {
			return err
		}

		record := l.Entry(ctx, Pruned, "", pruningRecord{h.prunedSeq + 1, last.seq, last.hash, newest}.target())
		if err := insertPending(ctx, tx, []Entry{record}); err != nil {
			return err
		}

		_, err = tx.ExecContext(ctx, `DELETE FROM audit_entries WHERE seq <= $1`, last.seq)
		if err != nil {
			return sqldb.Wrap(err, "deleting old audit entries")
		}

		_, err = tx.ExecContext(ctx, `UPDATE audit_chain SET pruned_seq = $1, pruned_hash = $2 WHERE id = 1`, last.seq,
			last.hash)
		return sqldb.Wrap(err, "moving the audit log's beginning")
	})

	if err == nil && n > 0 {
		l.log.InfoContext(ctx, "old audit entries deleted", "entries", n)
	}

	return n, err
}

// pruningRecord is the target of an entry with the action Pruned.
type pruningRecord struct {
	first, last int64  // numbers of the deleted entries
	hash        string // of the last
	newest      int64  // time of the newest, Unix milliseconds
}

func (p pruningRecord) target() string {
	return fmt.Sprintf("entries:%d-%d:%s:%d", p.first, p.last, p.hash, p.newest)
}

// findPruning returns the entry that records the pruning up to h.prunedSeq, and when the
// newest deleted entry was written. found is false if there is none: entries were deleted
// by something else, or by a version that did not record it.
func (l *Log) findPruning(ctx context.Context, h head) (at, newest time.Time, found bool, err error) {
	const matches = ` WHERE action = $1 AND target LIKE $2`
	pattern := fmt.Sprintf("entries:%%-%d:%s:%%", h.prunedSeq, h.prunedHash)

	var ms int64
	var target string
	err = l.db.QueryRowContext(ctx,
		`SELECT at, target FROM audit_entries`+matches+` UNION ALL SELECT at, target FROM audit_pending`+matches,
		string(Pruned), pattern).Scan(&ms, &target)
	if errors.Is(err, sql.ErrNoRows) {
		return at, newest, false, nil
	}
	if err != nil {
		return at, newest, false, sqldb.Wrap(err, "reading what was pruned of the audit log")
	}

	end, err := strconv.ParseInt(target[strings.LastIndexByte(target, ':')+1:], 10, 64)
	return time.UnixMilli(ms), time.UnixMilli(end), err == nil, nil
}
