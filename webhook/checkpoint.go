package webhook

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// checkpoint stores the positions and removes backlogs with nothing left.
func (w *partitionWorker) checkpoint(ctx context.Context) error {
	to, behind := w.collect()
	w.storedAt = time.Now()
	if len(behind) == 0 && len(w.rowsToDelete) == 0 && to.next == w.stored.next {
		return nil
	}
	err := w.service.db.Tx(ctx, func(tx *sql.Tx) error { return storeCheckpoint(ctx, tx, w.partition, to, w.rowsToDelete, behind) })
	switch {
	case err == nil:
		to.version++
		w.stored, w.rowsToDelete = to, nil
		w.noteStored(behind)
		w.commit(to.next.Offset)
	case !w.failing && ctx.Err() == nil && !errors.Is(err, errFenced):
		w.log.Warn("storing webhooks' positions failed, retrying", "partition", w.partition, "error", err)
	}
	w.failing = err != nil
	return err
}

// collect returns the partition's position and those of backlogs that differ from the
// stored ones. It removes backlogs with nothing left and adds their rows to
// rowsToDelete.
func (w *partitionWorker) collect() (to partitionPosition, behind []position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to = partitionPosition{next: w.tail, lastID: w.tailID, version: w.stored.version}
	count := 0
	for id, b := range w.backlogs {
		if b.idle(to.next.Offset) {
			if b.stored != nil {
				w.rowsToDelete = append(w.rowsToDelete, *b.stored)
			}
			delete(w.backlogs, id)
			continue
		}
		if !b.hook.suspended {
			count++
		}
		if at := b.position(w.partition, to.next.Offset); b.stored == nil || *b.stored != at {
			behind = append(behind, at)
		}
	}
	w.countBehind(count)
	return to, behind
}

// noteStored sets the stored positions of backlogs after a checkpoint.
func (w *partitionWorker) noteStored(behind []position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range behind {
		if b := w.backlogs[at.webhook]; b != nil {
			b.stored = &at
		}
	}
}

// countBehind changes this partition's part of the metric.
func (w *partitionWorker) countBehind(count int) {
	w.metrics.behind.Add(float64(count - w.reportedBehind))
	w.reportedBehind = count
}
