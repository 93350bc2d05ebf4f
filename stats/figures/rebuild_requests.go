package figures

import (
	"context"
	"slices"
	"sync"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/stats"
)

// Rebuilds stores the requests for rebuilds of figures. It is safe for concurrent use.
type Rebuilds struct {
	db *sqldb.DB

	mu           sync.Mutex
	changes      *sqldb.ChangeWatch
	openRebuilds []stats.Rebuild // as of the last read
}

// Rebuilds returns the store of rebuild requests.
func (s *Store) Rebuilds() *Rebuilds { return &Rebuilds{db: s.db, changes: s.db.WatchChanges()} }

// Create stores requests for rebuilds. It returns fault.KindConflict if others are
// open.
func (r *Rebuilds) Create(ctx context.Context, rebuilds []stats.Rebuild) error {
	return r.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		var open int
		if err := tx.QueryRowContext(ctx, `SELECT COUNT(*) FROM figures_rebuilds WHERE state = $1`,
			string(stats.RebuildOpen)).Scan(&open); err != nil {
			return sqldb.Wrap(err, "looking for open rebuilds")
		}
		if open > 0 {
			return fault.Conflict("figures are folded again already: %d partitions are open", open)
		}

		// One request at a time is kept: List shows the last one.
		_, err := tx.ExecContext(ctx, `DELETE FROM figures_rebuilds`)
		if err != nil {
			return sqldb.Wrap(err, "deleting old rebuilds")
		}

		for _, one := range rebuilds {
			_, err := tx.ExecContext(ctx,
				`INSERT INTO figures_rebuilds (topic_partition, request_id, from_time, state, message, folded, total)
				VALUES ($1, $2, $3, $4, '', 0, $5)`, one.Partition, one.ID, one.From, string(stats.RebuildOpen),
				one.Total)
			if err != nil {
				return sqldb.Wrap(err, "storing a rebuild")
			}
		}

		return nil
	})
}

// List returns the rebuilds requested last, by partition.
func (r *Rebuilds) List(ctx context.Context) ([]stats.Rebuild, error) {
	return r.listWhere(ctx, "")
}

// ListOpen implements stats.Rebuilds.
func (r *Rebuilds) ListOpen(ctx context.Context) ([]stats.Rebuild, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	// Asked each second: an unchanged database answers from memory.
	err := r.changes.Poll(func() (err error) {
		r.openRebuilds, err = r.listWhere(ctx, `WHERE state = $1`, string(stats.RebuildOpen))
		return err
	})
	return slices.Clone(r.openRebuilds), err
}

func (r *Rebuilds) listWhere(ctx context.Context, where string, args ...any) ([]stats.Rebuild, error) {
	rows, err := r.db.QueryContext(ctx, `SELECT topic_partition, request_id, from_time, state, message, folded, total
		FROM figures_rebuilds `+where+` ORDER BY topic_partition`, args...)
	return sqldb.Collect(rows, err, "listing rebuilds", func(scan sqldb.ScanFunc) (one stats.Rebuild, err error) {
		err = scan(&one.Partition, &one.ID, &one.From, &one.State, &one.Message, &one.Folded, &one.Total)
		return one, err
	})
}

// Update implements stats.Rebuilds.
func (r *Rebuilds) Update(ctx context.Context, one stats.Rebuild) error {
	_, err := r.db.ExecContext(ctx, `UPDATE figures_rebuilds SET state = $3, message = $4, folded = $5, total = $6
		WHERE topic_partition = $1 AND request_id = $2 AND state = $7`,
		one.Partition, one.ID, string(one.State), one.Message, one.Folded, one.Total, string(stats.RebuildOpen))
	return sqldb.Wrap(err, "storing a rebuild")
}
