package cdrindex

import (
	"context"
	"database/sql"
	"errors"

	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

// indexPosition is the position up to which a partition is indexed.
type indexPosition struct {
	next       kafka.LogPosition // after the last record indexed
	generation int64             // number of times that the topic was recreated
}

// errFenced is returned when another indexer has moved the partition's offset.
var errFenced = errors.New("another indexer is processing the partition")

const selectPosition = `SELECT next, epoch, topic_id, leader_epoch FROM cdrindex_offsets WHERE topic_partition = $1`

func scanPosition(scan sqldb.ScanFunc) (position indexPosition, err error) {
	err = scan(&position.next.Offset, &position.generation, &position.next.TopicID, &position.next.LeaderEpoch)
	return position, err
}

// findOrCreatePosition returns the partition's position. If there is none, it creates
// one at first.
func (x *Index) findOrCreatePosition(ctx context.Context, partition int,
	first int64) (position indexPosition, err error) {
	err = x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO cdrindex_offsets (topic_partition, next, epoch) VALUES ($1, $2, 0)
			ON CONFLICT (topic_partition) DO NOTHING`, partition, first)
		if err != nil {
			return err
		}
		position, err = scanPosition(tx.QueryRowContext(ctx, selectPosition, partition).Scan)
		return err
	})
	return position, sqldb.Wrap(err, "reading an offset")
}

// findGeneration returns the generation of the partition's topic, 0 when nothing was indexed yet.
func (x *Index) findGeneration(ctx context.Context, partition int) (int64, error) {
	position, err := scanPosition(x.db.QueryRowContext(ctx, selectPosition, partition).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return position.generation, sqldb.Wrap(err, "reading an offset")
}

// updatePosition updates the partition's position within tx. Returns errFenced if it is
// not at from, because another indexer has moved it.
func updatePosition(ctx context.Context, tx *sqldb.BulkTx, partition int, from, next indexPosition) error {
	n, err := sqldb.Exec(ctx, tx, `UPDATE cdrindex_offsets SET next = $4, epoch = $5, topic_id = $6, leader_epoch = $7
		WHERE topic_partition = $1 AND next = $2 AND epoch = $3`, partition, from.next.Offset, from.generation,
		next.next.Offset, next.generation, next.next.TopicID, next.next.LeaderEpoch)
	if err == nil && n == 0 {
		return errFenced
	}
	return sqldb.Wrap(err, "storing an offset")
}

// skipRecords updates a partition's position without indexing.
func (x *Index) skipRecords(ctx context.Context, partition int, from, next indexPosition) error {
	return x.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error { return updatePosition(ctx, tx, partition, from, next) })
}
