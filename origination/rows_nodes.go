package origination

import (
	"context"
	"errors"
	"time"
)

// beat says that the node lives, for as long as lease.
func (t rows) beat(ctx context.Context, lease time.Duration) error {
	return alone(ctx, t.db, "saying that the node lives", func(tx runner) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO origination_nodes (node, expires_at) VALUES ($1, `+clock(t.db)+` + $2)
			ON CONFLICT (node) DO UPDATE SET expires_at = excluded.expires_at`, t.node, lease.Milliseconds())
		return err
	})
}

// leave says that the node is gone: others may have its calls at once.
func (t rows) leave(ctx context.Context) error {
	return alone(ctx, t.db, "saying that the node leaves", func(tx runner) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM origination_nodes WHERE node = $1`, t.node)
		return err
	})
}

// othersAreDead forgets the signs of life of every other node.
func (t rows) othersAreDead(ctx context.Context) error {
	return alone(ctx, t.db, "forgetting other nodes", func(tx runner) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM origination_nodes WHERE node <> $1`, t.node)
		return err
	})
}

// takeOver makes the calls of dead nodes this one's. Of two nodes that try at
// once one gets each call: the other finds it with a living node.
func (t rows) takeOver(ctx context.Context) (taken []row, err error) {
	err = alone(ctx, t.db, "taking over calls", func(tx runner) error {
		taken = nil
		result, err := tx.QueryContext(ctx, `UPDATE origination_calls SET node = $1 WHERE live AND node <> $1 AND node NOT IN
			(SELECT node FROM origination_nodes WHERE expires_at > `+clock(t.db)+`) RETURNING `+columns, t.node)
		if err != nil {
			return err
		}
		for result.Next() {
			r, err := scanRow(result.Scan)
			if err != nil {
				return errors.Join(err, result.Close())
			}
			taken = append(taken, r)
		}
		return errors.Join(result.Err(), result.Close())
	})
	return taken, err
}
