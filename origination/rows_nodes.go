package origination

import (
	"context"
	"time"

	"trunkline/internal/sqldb"
)

// beat says that the node lives, for as long as lease.
func (t rows) beat(ctx context.Context, lease time.Duration) error {
	return sqldb.Wrap(t.db.Alone(ctx, func(tx sqldb.Runner) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO origination_nodes (node, expires_at) VALUES ($1, `+clock(t.db)+` + $2)
			ON CONFLICT (node) DO UPDATE SET expires_at = excluded.expires_at`, t.node, lease.Milliseconds())
		return err
	}), "saying that the node lives")
}

// leave says that the node is gone: others may have its calls at once.
func (t rows) leave(ctx context.Context) error {
	return sqldb.Wrap(t.db.Alone(ctx, func(tx sqldb.Runner) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM origination_nodes WHERE node = $1`, t.node)
		return err
	}), "saying that the node leaves")
}

// othersAreDead forgets the signs of life of every other node.
func (t rows) othersAreDead(ctx context.Context) error {
	return sqldb.Wrap(t.db.Alone(ctx, func(tx sqldb.Runner) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM origination_nodes WHERE node <> $1`, t.node)
		return err
	}), "forgetting other nodes")
}

// takeOver makes the calls of dead nodes this one's. Of two nodes that try at
// once one gets each call: the other finds it with a living node.
func (t rows) takeOver(ctx context.Context) (taken []row, err error) {
	err = t.db.Alone(ctx, func(tx sqldb.Runner) error {
		found, err := tx.QueryContext(ctx, `UPDATE origination_calls SET node = $1 WHERE live AND node <> $1 AND node NOT IN
			(SELECT node FROM origination_nodes WHERE expires_at > `+clock(t.db)+`) RETURNING `+columns, t.node)
		taken, err = sqldb.Collect(found, err, "taking over calls", scanRow)
		return err
	})
	return taken, err
}
