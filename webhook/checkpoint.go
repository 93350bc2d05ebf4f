package webhook

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"trunkline/internal/consume"
)

// checkpoint stores the positions and removes idle backlogs.
func (w *partitionWorker) checkpoint(ctx context.Context) error {
	current, behind := w.collect()
	// Also if storing fails: a database that fails is asked once in each interval.
	w.storedAt = time.Now()
	if len(behind) == 0 && len(w.rowsToDelete) == 0 && current.LogPosition == w.lastCheckpoint.LogPosition {
		return nil
	}

	err := w.service.db.Tx(ctx, func(tx *sql.Tx) error {
		if err := w.service.positions.Move(ctx, tx, w.partition, w.lastCheckpoint, &current); err != nil {
			return err
		}
		return storeCheckpoint(ctx, tx, w.partition, w.rowsToDelete, behind)
	})

	switch {
	case err == nil:
		w.lastCheckpoint, w.rowsToDelete = current, nil
		w.setStored(behind)
		w.commit(current.Offset)
	case !w.checkpointFailing && ctx.Err() == nil && !errors.Is(err, consume.ErrMoved):
		w.log.Warn("storing webhooks' positions failed, retrying", "partition", w.partition, "error", err)
	}

	w.checkpointFailing = err != nil
	return err
}

// collect returns the partition's position and the positions of backlogs that differ from
// the stored ones. It removes idle backlogs and adds their rows to rowsToDelete.
func (w *partitionWorker) collect() (current consume.Position, behind []deliveryPosition) {
	w.mu.Lock()
	defer w.mu.Unlock()

	current = consume.Position{LogPosition: w.tail, LastID: w.tailID}
	delivering := 0 // those behind that are not suspended
	for id, b := range w.backlogs {
		if b.isIdle(current.Offset) {
			if b.storedRow != nil {
				w.rowsToDelete = append(w.rowsToDelete, *b.storedRow)
			}
			delete(w.backlogs, id)
			continue
		}

		if !b.hook.suspended {
			delivering++
		}

		pos := b.storedPosition(w.partition, current.Offset)
		if b.storedRow == nil || *b.storedRow != pos {
			behind = append(behind, pos)
		}
	}

	w.reportBehind(delivering)
	return current, behind
}

// setStored sets backlog.storedRow after a checkpoint.
func (w *partitionWorker) setStored(behind []deliveryPosition) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, pos := range behind {
		b := w.backlogs[pos.webhook]
		if b != nil {
			b.storedRow = &pos
		}
	}
}

// reportBehind sets this partition's part of the metric trunkline_webhook_behind.
func (w *partitionWorker) reportBehind(count int) {
	w.metrics.behind.Add(float64(count - w.reportedBehind))
	w.reportedBehind = count
}
