package webhook

import (
	"context"
)

// reconcile applies the current webhook list: changed webhooks resume at their position,
// retried ones start at the new position.
func (w *partitionWorker) reconcile(ctx context.Context) error {
	// Before the rows: one that is of a later generation than this snapshot is left to the next.
	current := w.registry.current.Load()
	var rows map[string]deliveryPosition
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
		if current.byID[id] == nil { // it was deleted, with its rows, or none of its accounts exists
			b.cancelSending()
			delete(w.backlogs, id)
		}
	}

	for id, h := range current.byID {
		previous := w.hooks.byID[id]
		if previous == h {
			continue
		}

		b := w.backlogs[id]
		switch row, stored := rows[id]; {
		case previous == nil || previous.positionGeneration != h.positionGeneration: // new to this worker, or moved
			if stored && row.generation == h.positionGeneration {
				w.replaceBacklog(h, b,
					&backlog{readUpTo: row.next, lastReadID: row.lastID, deliveredID: row.lastID, storedRow: &row})
			} else if b != nil || h.suspended {
				w.replaceBacklog(h, b, &backlog{readUpTo: w.tail.Offset, lastReadID: w.tailID, deliveredID: w.tailID})
			}
		case b != nil:
			// The queue was selected by the former filters.
			b.dropQueue(w.tail.Offset)
			w.replaceBacklog(h, b,
				&backlog{readUpTo: b.readUpTo, lastReadID: b.deliveredID, deliveredID: b.deliveredID,
					storedRow: b.storedRow})
		// It needs a position of its own, because that of the partition goes on.
		case h.suspended:
			w.replaceBacklog(h, nil, &backlog{readUpTo: w.tail.Offset, lastReadID: w.tailID, deliveredID: w.tailID})
		}
	}

	w.hooks = current
	return nil
}

// replaceBacklog replaces the backlog old, which may be nil, by b and starts its sender
// goroutine. The caller holds mu.
func (w *partitionWorker) replaceBacklog(h *loadedWebhook, old, b *backlog) {
	b.hook = h
	if old != nil {
		old.cancelSending()
		b.done = old.done
	}
	w.backlogs[h.ID] = b
	w.startSending(b)
}
