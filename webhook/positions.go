package webhook

import (
	"context"
	"database/sql"
	"errors"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
)

// deliveryPosition is the position of a webhook in one partition of cc.evt.
type deliveryPosition struct {
	webhook    string
	partition  int
	generation int64    // row.positionGeneration of the webhook that it belongs to
	next       int64    // offset of the next event to deliver
	lastID     event.ID // events up to this id are not delivered again
}

// partitionPosition is the position in a partition of all webhooks without a position of
// their own there.
type partitionPosition struct {
	next    kafka.LogPosition
	lastID  event.ID // 0 if unknown
	version int64    // incremented by each store; detects another owner
}

// errFenced is returned if another node has taken over the partition.
var errFenced = errors.New("another node delivers the events of the partition")

// upsertPositions inserts or replaces a webhook's positions.
func upsertPositions(ctx context.Context, tx sqldb.Runner, id string, generation int64,
	positions []deliveryPosition) error {
	for _, p := range positions {
		_, err := tx.ExecContext(ctx,
			`INSERT INTO webhook_positions (topic_partition, webhook_id, seek, next, last_id) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (topic_partition, webhook_id) DO UPDATE SET seek = excluded.seek, next = excluded.next, last_id = excluded.last_id`,
			p.partition, id, generation, p.next, int64(p.lastID))
		if err != nil {
			return sqldb.Wrap(err, "storing a webhook's positions")
		}
	}
	return nil
}

// listPositions returns the positions in a partition, by webhook.
func listPositions(ctx context.Context, q sqldb.Runner, partition int) (map[string]deliveryPosition, error) {
	rows, err := q.QueryContext(ctx,
		`SELECT webhook_id, seek, next, last_id FROM webhook_positions WHERE topic_partition = $1`, partition)
	positions, err := sqldb.Collect(rows, err, "reading webhooks' positions",
		func(scan sqldb.ScanFunc) (deliveryPosition, error) {
			p := deliveryPosition{partition: partition}
			err := scan(&p.webhook, &p.generation, &p.next, (*int64)(&p.lastID))
			return p, err
		})
	if err != nil {
		return nil, err
	}
	byWebhook := make(map[string]deliveryPosition, len(positions))
	for _, p := range positions {
		byWebhook[p.webhook] = p
	}
	return byWebhook, nil
}

// findPartition returns the position of a partition; ok is false if there is none.
func findPartition(ctx context.Context, q sqldb.Runner, partition int) (pos partitionPosition, ok bool, err error) {
	row := q.QueryRowContext(ctx,
		`SELECT next, topic_id, leader_epoch, last_id, version FROM webhook_partitions WHERE topic_partition = $1`,
		partition)
	err = sqldb.FindInto(row, sql.ErrNoRows, "reading a partition's position", &pos.next.Offset, &pos.next.TopicID,
		&pos.next.LeaderEpoch, (*int64)(&pos.lastID), &pos.version)
	if errors.Is(err, sql.ErrNoRows) {
		return pos, false, nil
	}
	return pos, err == nil, err
}

// fencePartition stores the position of a partition and fences the node that had it.
func fencePartition(ctx context.Context, tx sqldb.Runner, partition int, pos *partitionPosition) error {
	err := tx.QueryRowContext(ctx,
		`INSERT INTO webhook_partitions (topic_partition, next, topic_id, leader_epoch, last_id, version)
		VALUES ($1, $2, $3, $4, $5, 1) ON CONFLICT (topic_partition) DO UPDATE SET next = excluded.next, topic_id = excluded.topic_id,
		leader_epoch = excluded.leader_epoch, last_id = excluded.last_id, version = webhook_partitions.version + 1 RETURNING version`,
		partition, pos.next.Offset, pos.next.TopicID, pos.next.LeaderEpoch, int64(pos.lastID)).Scan(&pos.version)
	return sqldb.Wrap(err, "taking a partition over")
}

// storeCheckpoint stores the partition's position, deletes the webhooks' positions
// caughtUp and stores the positions behind. Positions of webhooks that were deleted or moved
// by a retry meanwhile do not change. Returns errFenced if another node has taken over
// the partition.
func storeCheckpoint(ctx context.Context, tx sqldb.Runner, partition int, current partitionPosition,
	caughtUp, behind []deliveryPosition) error {
	const operation = "storing webhooks' positions"
	n, err := sqldb.Exec(ctx, tx,
		`UPDATE webhook_partitions SET next = $3, topic_id = $4, leader_epoch = $5, last_id = $6, version = version + 1
		WHERE topic_partition = $1 AND version = $2`, partition, current.version, current.next.Offset,
		current.next.TopicID, current.next.LeaderEpoch, int64(current.lastID))
	switch {
	case err != nil:
		return sqldb.Wrap(err, operation)
	case n == 0:
		return errFenced
	}
	for _, p := range caughtUp {
		_, err := tx.ExecContext(ctx,
			`DELETE FROM webhook_positions WHERE topic_partition = $1 AND webhook_id = $2 AND seek = $3`, partition,
			p.webhook, p.generation)
		if err != nil {
			return sqldb.Wrap(err, operation)
		}
	}
	for _, p := range behind {
		_, err := tx.ExecContext(ctx, `INSERT INTO webhook_positions (topic_partition, webhook_id, seek, next, last_id)
			SELECT CAST($1 AS BIGINT), id, seek, CAST($4 AS BIGINT), CAST($5 AS BIGINT) FROM webhooks WHERE id = $2 AND seek = $3
			ON CONFLICT (topic_partition, webhook_id) DO UPDATE SET next = excluded.next, last_id = excluded.last_id
			WHERE webhook_positions.seek = excluded.seek`, partition, p.webhook, p.generation, p.next, int64(p.lastID))
		if err != nil {
			return sqldb.Wrap(err, operation)
		}
	}
	return nil
}
