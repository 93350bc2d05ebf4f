package figures

import (
	"context"
	"errors"

	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

// errFenced is returned when another indexer has moved the partition's offset.
var errFenced = errors.New("another indexer is processing the partition")

// findOrCreateOffset returns the offset up to which a partition is stored. If nothing
// is stored, it starts at first.
func (s *Store) findOrCreateOffset(ctx context.Context, partition int, first int64) (at kafka.LogPosition, err error) {
	err = s.db.BulkTx(ctx, func(tx *sqldb.BulkTx) error {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO figures_offsets (topic_partition, next, topic_id, leader_epoch) VALUES ($1, $2, '', $3)
			ON CONFLICT (topic_partition) DO NOTHING`, partition, first, kafka.UnknownEpoch)
		if err != nil {
			return err
		}
		return tx.QueryRowContext(ctx,
			`SELECT next, topic_id, leader_epoch FROM figures_offsets WHERE topic_partition = $1`, partition).
			Scan(&at.Offset, &at.TopicID, &at.LeaderEpoch)
	})
	return at, sqldb.Wrap(err, "reading an offset")
}

// updateOffset advances a partition's offset within tx. It returns errFenced if the
// offset is not from.
func updateOffset(ctx context.Context, tx *sqldb.BulkTx, partition int, from, to kafka.LogPosition) error {
	n, err := sqldb.Exec(ctx, tx, `UPDATE figures_offsets SET next = $4, topic_id = $5, leader_epoch = $6
		WHERE topic_partition = $1 AND next = $2 AND topic_id = $3`, partition, from.Offset, from.TopicID,
		to.Offset, to.TopicID, to.LeaderEpoch)
	if err == nil && n == 0 {
		return errFenced
	}
	return sqldb.Wrap(err, "storing an offset")
}
