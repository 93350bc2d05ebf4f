package figures

import (
	"context"
	"fmt"
	"time"

	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

const (
	retentionEvery = 10 * time.Minute
	deleteRows     = 2000 // bounds one transaction
)

// runRetention deletes rows past their retention until ctx ends.
func (s *Store) runRetention(ctx context.Context) {
	for s.retention != 0 {
		err := s.deleteBefore(ctx, s.firstKept())
		if err != nil && ctx.Err() == nil {
			s.log.Warn("retention of figures failed, retrying", "error", err)
		}
		if !retry.Sleep(ctx, retentionEvery) {
			return
		}
	}
}

// deleteBefore deletes the rows of intervals that began before a time.
func (s *Store) deleteBefore(ctx context.Context, kept int64) error {
	for {
		n, err := s.delete(ctx, "interval_start < $1", kept)
		if err == nil {
			var more int
			more, err = s.deleteOccurrences(ctx, "ended_ms <> 0 AND ended_ms < $1", "abandoned_ms < $1", kept*1000)
			n += more
		}
		if err != nil || n == 0 {
			return err
		}
	}
}

// PurgeAccount deletes some of the rows of a deleted account and returns their number;
// 0: none is left. Rows that arrive later from cc.stats are purged a day later.
func (s *Store) PurgeAccount(ctx context.Context, account string) (n int, err error) {
	n, err = s.delete(ctx, "account_id = $1", account)
	if err != nil {
		return n, err
	}
	more, err := s.deleteOccurrences(ctx, "account_id = $1", "account_id = $1", account)
	return n + more, err
}

// delete deletes up to deleteRows rows of each table and returns their number.
func (s *Store) delete(ctx context.Context, condition string, arg any) (n int, err error) {
	for _, t := range [...]struct{ name, key string }{
		{"figures_days", "account_id, interval_start"}, // first: a day without some of its rows has no sums
		{dayTable, "account_id, interval_start, queue_id"},
		{"figures_queues", "account_id, interval_start, queue_id, interval_seconds, topic_partition"},
		{"figures_agents", "account_id, interval_start, agent_id, interval_seconds, topic_partition"},
	} {
		statement := fmt.Sprintf(`DELETE FROM %[1]s WHERE (%[2]s) IN (SELECT %[2]s FROM %[1]s WHERE %[3]s LIMIT $2)`,
			t.name, t.key, condition)
		deleted, err := s.db.ExecWithoutTx(ctx, statement, arg, deleteRows)
		n += deleted
		if err != nil {
			return n, sqldb.Wrap(err, "deleting figures")
		}
	}
	return n, nil
}

// EraseCaller deletes the abandoned calls of a caller's number in an account, and returns their
// number. Those that cc.stats still has come back with a rebuild.
func (s *Store) EraseCaller(ctx context.Context, account, number string) (n int, err error) {
	n, err = s.db.ExecWithoutTx(ctx, `DELETE FROM figures_abandoned WHERE account_id = $1 AND caller = $2`, account,
		number)
	return n, sqldb.Wrap(err, "deleting abandoned calls")
}

// deleteOccurrences is delete for alerts that have ended and abandoned calls. Each condition has
// the argument $1.
func (s *Store) deleteOccurrences(ctx context.Context, alerts, calls string, arg any) (n int, err error) {
	for _, statement := range [...]string{
		"DELETE FROM figures_alerts WHERE (account_id, alert_id) IN (SELECT account_id, alert_id FROM figures_alerts WHERE " +
			alerts + " LIMIT $2)",
		"DELETE FROM figures_abandoned WHERE (account_id, call_id, entered_ms) IN (SELECT account_id, call_id, entered_ms FROM figures_abandoned WHERE " +
			calls + " LIMIT $2)",
	} {
		deleted, err := s.db.ExecWithoutTx(ctx, statement, arg, deleteRows)
		n += deleted
		if err != nil {
			return n, sqldb.Wrap(err, "deleting alerts and abandoned calls")
		}
	}
	return n, nil
}
