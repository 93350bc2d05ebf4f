package origination

import (
	"context"
	"time"

	"trunkline/internal/sqldb"
)

// extendLease extends the node's lease to now + lease on the database's clock. It returns false if the lease has
// expired.
func (t rows) extendLease(ctx context.Context, lease time.Duration) (held bool, err error) {
	now := t.db.ClockExpr()
	n, err := t.db.ExecWithoutTx(ctx, `UPDATE origination_nodes SET expires_at = `+now+` + $2
		WHERE node = $1 AND expires_at > `+now, t.node, lease.Milliseconds())
	return n == 1, sqldb.Wrap(err, "extending the node's lease")
}

// acquireLease sets the node's lease to now + lease, whether it has one or not.
func (t rows) acquireLease(ctx context.Context, lease time.Duration) error {
	_, err := t.db.ExecWithoutTx(ctx,
		`INSERT INTO origination_nodes (node, expires_at) VALUES ($1, `+t.db.ClockExpr()+` + $2)
			ON CONFLICT (node) DO UPDATE SET expires_at = excluded.expires_at`, t.node, lease.Milliseconds())
	return sqldb.Wrap(err, "acquiring the node's lease")
}

// releaseLease ends the node's lease, so that other nodes may take over its calls at once.
func (t rows) releaseLease(ctx context.Context) error {
	_, err := t.db.ExecWithoutTx(ctx, `DELETE FROM origination_nodes WHERE node = $1`, t.node)
	return sqldb.Wrap(err, "releasing the node's lease")
}

// expireOtherLeases ends the leases of all other nodes.
func (t rows) expireOtherLeases(ctx context.Context) error {
	_, err := t.db.ExecWithoutTx(ctx, `DELETE FROM origination_nodes WHERE node <> $1`, t.node)
	return sqldb.Wrap(err, "ending other nodes' leases")
}

// listLive returns the ids of the node's live calls.
func (t rows) listLive(ctx context.Context) (ids []string, err error) {
	found, err := t.db.QueryContext(ctx, `SELECT id FROM origination_calls WHERE node = $1 AND live`, t.node)
	return sqldb.Collect(found, err, "listing the node's calls", sqldb.ScanColumn[string])
}

// takeOverExpired moves the calls of nodes without a lease to this node. If two nodes do so at once,
// each call goes to one of them: the other finds that the call's node has a lease.
func (t rows) takeOverExpired(ctx context.Context) (taken []row, err error) {
	err = t.db.WithoutTx(ctx, func(tx sqldb.Runner) error {
		found, err := tx.QueryContext(ctx,
			`UPDATE origination_calls SET node = $1 WHERE live AND node <> $1 AND node NOT IN
			(SELECT node FROM origination_nodes WHERE expires_at > `+t.db.ClockExpr()+`) RETURNING `+columns, t.node)
		taken, err = sqldb.Collect(found, err, "taking over calls", scanRow)
		return err
	})
	return taken, err
}
