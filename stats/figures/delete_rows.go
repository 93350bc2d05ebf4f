package figures

import (
	"context"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

const retentionEvery = 10 * time.Minute

// runRetention deletes rows past their retention until ctx ends.
func (s *Store) runRetention(ctx context.Context) {
	for range retry.Rounds(ctx, retentionEvery) {
		if s.retention == 0 {
			return
		}
		err := s.deleteBefore(ctx, s.firstKept())
		if err != nil && ctx.Err() == nil {
			s.log.Warn("retention of figures failed, retrying", "error", err)
		}
	}
}

// deleteBefore deletes the rows of intervals that began before a time.
func (s *Store) deleteBefore(ctx context.Context, kept int64) error {
	const ofInterval = "interval_start < $1"
	return s.db.DeleteAll(ctx, deleting, deletions(ofInterval, kept, "ended_ms <> 0 AND ended_ms < $1",
		"abandoned_ms < $1", kept*1000)...)
}

// PurgeAccount deletes some of the rows of a deleted account and returns their number;
// 0: none is left. Rows that arrive later from cc.stats are purged a day later.
func (s *Store) PurgeAccount(ctx context.Context, account string) (n int, err error) {
	const ofAccount = "account_id = $1"
	return s.db.DeleteSome(ctx, deleting, deletions(ofAccount, account, ofAccount, ofAccount, account)...)
}

const deleting = "deleting figures"

// deletions returns the deletion of rows of intervals, alerts and abandoned calls. Each condition has the argument $1:
// that of intervals, or that of occurrences.
func deletions(intervals string, ofIntervals any, alerts, calls string, ofOccurrences any) []sqldb.Deletion {
	return []sqldb.Deletion{
		// first: a day without some of its rows has no sums
		{Table: "figures_days", Key: "account_id, interval_start", Where: intervals, Args: []any{ofIntervals}},
		{Table: dayTable, Key: "account_id, interval_start, queue_id", Where: intervals, Args: []any{ofIntervals}},
		{Table: "figures_queues", Key: "account_id, interval_start, queue_id, interval_seconds, topic_partition",
			Where: intervals, Args: []any{ofIntervals}},
		{Table: "figures_agents", Key: "account_id, interval_start, agent_id, interval_seconds, topic_partition",
			Where: intervals, Args: []any{ofIntervals}},
		{Table: "figures_alerts", Key: "account_id, alert_id", Where: alerts, Args: []any{ofOccurrences}},
		{Table: "figures_abandoned", Key: "account_id, call_id, entered_ms", Where: calls, Args: []any{ofOccurrences}},
	}
}

// EraseCaller deletes the abandoned calls of a caller's number in an account, and returns their
// number. Those that cc.stats still has come back with a rebuild.
func (s *Store) EraseCaller(ctx context.Context, account, number string) (n int, err error) {
	n, err = s.db.ExecWithoutTx(ctx, `DELETE FROM figures_abandoned WHERE account_id = $1 AND caller = $2`, account,
		number)
	return n, sqldb.Wrap(err, "deleting abandoned calls")
}
