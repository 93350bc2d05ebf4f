package webhook

import (
	"context"
)

// reconcile applies the current webhook list: changed webhooks resume at their position,
// retried ones start at the new position.
func (w *partitionWorker) reconcile(ctx context.Context) error {
	now := w.registry.current.Load()
	var rows map[string]position
	err := w.retry(ctx, "reading positions", func() (err error) {
		rows, err = listPositions(ctx, w.service.db, w.partition)
		return err
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, b := range w.backlogs {
		if now.byID[id] == nil { // its rows were deleted with it
			b.stop()
			delete(w.backlogs, id)
		}
	}
	for id, h := range now.byID {
		before := w.hooks.byID[id]
		if before == h {
			continue
		}
		b := w.backlogs[id]
		switch row, stored := rows[id]; {
		case before == nil || before.positionGeneration != h.positionGeneration: // new to this worker, or moved
			if stored && row.generation == h.positionGeneration {
				w.replace(h, b, &backlog{readTo: row.next, readID: row.lastID, doneID: row.lastID, stored: &row})
			} else if b != nil || h.suspended {
				w.replace(h, b, &backlog{readTo: w.tail.Offset, readID: w.tailID, doneID: w.tailID})
			}
		case b != nil:
			b.drop(w.tail.Offset)
			w.replace(h, b, &backlog{readTo: b.readTo, readID: b.doneID, doneID: b.doneID, stored: b.stored})
		case h.suspended:
			w.replace(h, nil, &backlog{readTo: w.tail.Offset, readID: w.tailID, doneID: w.tailID})
		}
	}
	w.hooks = now
	return nil
}

// replace replaces the backlog old, which may be nil, with b and starts its sender. It
// needs mu.
func (w *partitionWorker) replace(h *hook, old, b *backlog) {
	if b.hook = h; old != nil {
		old.stop()
		b.done = old.done
	}
	w.backlogs[h.ID] = b
	w.startSending(b)
}
