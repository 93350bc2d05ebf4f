package cdrindex

import (
	"context"
	"database/sql"
	"errors"

	"trunkline/internal/sqldb"
)

// position is how far the index is in a partition of the topic.
type position struct{ next, epoch int64 }

// errFenced says that another indexer has moved the partition's offset.
var errFenced = errors.New("another indexer is at work on the partition")

const selectPosition = `SELECT next, epoch FROM cdrindex_offsets WHERE topic_partition = $1`

// position reads the partition's; where there is none, it begins at first.
func (x *Index) position(ctx context.Context, partition int, first int64) (at position, err error) {
	err = x.db.Load(ctx, func(tx *sqldb.Loader) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO cdrindex_offsets (topic_partition, next, epoch) VALUES ($1, $2, 0)
			ON CONFLICT (topic_partition) DO NOTHING`, partition, first)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, selectPosition, partition).Scan(&at.next, &at.epoch)
	})
	return at, sqldb.Wrap(err, "reading an offset")
}

// epoch is the partition's, 0 when nothing of it was indexed yet.
func (x *Index) epoch(ctx context.Context, partition int) (int64, error) {
	var at position
	err := x.db.QueryRowContext(ctx, selectPosition, partition).Scan(&at.next, &at.epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at.epoch, sqldb.Wrap(err, "reading an offset")
}

// advance moves the partition from one position to another within tx. Whoever
// comes second waits for the first and is refused.
func advance(ctx context.Context, tx *sqldb.Loader, partition int, from, to position) error {
	result, err := tx.ExecContext(ctx, `UPDATE cdrindex_offsets SET next = $4, epoch = $5
		WHERE topic_partition = $1 AND next = $2 AND epoch = $3`, partition, from.next, from.epoch, to.next, to.epoch)
	if err != nil {
		return sqldb.Wrap(err, "storing an offset")
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		return errFenced
	}
	return sqldb.Wrap(err, "storing an offset")
}

// skip moves a partition without indexing anything.
func (x *Index) skip(ctx context.Context, partition int, from, to position) error {
	return x.db.Load(ctx, func(tx *sqldb.Loader) error { return advance(ctx, tx, partition, from, to) })
}
