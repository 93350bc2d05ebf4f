package audit

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"trunkline/internal/sqldb"
)

const (
	publishBatchEntries = 500
	publishLease        = 30 * time.Second
)

// publishChain publishes the entries of the chain that are not on the topic yet. A lease
// ensures that one node at a time publishes. If that node fails in between, another one
// publishes some entries again.
func (l *Log) publishChain(ctx context.Context) error {
	for range maxBatchesPerCall {
		seq, acquired, err := l.acquireTopicLease(ctx)
		if err != nil || !acquired {
			return err
		}

		entries, err := l.entriesAfter(ctx, seq, publishBatchEntries)
		if err == nil && len(entries) > 0 {
			// Not for longer than the lease, after which another node publishes.
			publishCtx, cancel := context.WithTimeout(ctx, publishLease)
			err = l.publisher.Publish(publishCtx, entries)
			cancel()
		}
		if err == nil && len(entries) > 0 {
			seq = entries[len(entries)-1].Seq
		}

		err = errors.Join(err, l.releaseTopicLease(ctx, seq))
		if err != nil || len(entries) < publishBatchEntries {
			return err
		}
	}

	return nil
}

// acquireTopicLease acquires the lease of the topic if there are entries to publish. It
// returns the number of the newest published entry, and whether it acquired the lease.
func (l *Log) acquireTopicLease(ctx context.Context) (seq int64, acquired bool, err error) {
	now := l.now()
	var newest int64
	// Read first: the update below would write at each poll of every node.
	err = l.db.QueryRowContext(ctx, `SELECT t.seq, c.seq FROM audit_topic t, audit_chain c WHERE t.lease_until <= $1`,
		now.UnixMilli()).
		Scan(&seq, &newest)
	if errors.Is(err, sql.ErrNoRows) || err == nil && seq >= newest {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, sqldb.Wrap(err, "reading the audit topic's position")
	}

	err = l.db.WithoutTx(ctx, func(db sqldb.Runner) error {
		return db.QueryRowContext(ctx,
			`UPDATE audit_topic SET lease_until = $1 WHERE id = 1 AND lease_until <= $2 RETURNING seq`,
			now.Add(publishLease).UnixMilli(), now.UnixMilli()).Scan(&seq)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, nil
	}

	return seq, err == nil, sqldb.Wrap(err, "claiming the audit topic")
}

// releaseTopicLease stores the number of the newest published entry, and releases the lease.
func (l *Log) releaseTopicLease(ctx context.Context, seq int64) error {
	// A node whose lease has ended meanwhile does not move the position back.
	_, err := l.db.ExecWithoutTx(ctx,
		`UPDATE audit_topic SET lease_until = 0, seq = CASE WHEN seq < $1 THEN $1 ELSE seq END WHERE id = 1`, seq)
	return sqldb.Wrap(err, "storing the audit topic's position")
}
