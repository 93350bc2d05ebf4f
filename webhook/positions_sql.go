package webhook

import (
	"context"

	"trunkline/event"
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

// storeCheckpoint deletes the webhooks' positions caughtUp in a partition and stores the positions behind. Positions of
// webhooks that were deleted or moved by a retry meanwhile do not change.
func storeCheckpoint(ctx context.Context, tx sqldb.Runner, partition int, caughtUp, behind []deliveryPosition) error {
	const operation = "storing webhooks' positions"
	// First, since a webhook that caught up before a checkpoint failed may be behind again.
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
