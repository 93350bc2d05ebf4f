package webhook

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

const (
	// checkpointInterval is the time between two stores of the positions. After a crash,
	// the events delivered since the last checkpoint are delivered again.
	checkpointInterval = time.Second
	// reconcileInterval is the time between two checks of a worker without new events for
	// changes of webhooks.
	reconcileInterval = 250 * time.Millisecond
	// idleCommitInterval is the time between two commits of a partition's end while there
	// are no webhooks.
	idleCommitInterval = 10 * time.Second
	// shutdownTimeout bounds the last checkpoint of a worker.
	shutdownTimeout = 3 * time.Second
)

// partitionWorker delivers the events of one partition. One goroutine reads and
// matches; each backlog has one that sends.
type partitionWorker struct {
	*Deliverer
	partition int
	commit    func(next int64) // commits an offset to the group, which only measures its lag
	retry     retry.Func       // repeats while a backend is unavailable

	// Used by the reading goroutine only:
	hooks             *webhookSnapshot   // that the backlogs follow; the registry may have a newer one
	lastCheckpoint    consume.Position   // of the last checkpoint that was stored
	storedAt          time.Time          // of the last checkpoint, also of one that failed
	checkpointFailing bool               // the last checkpoint failed
	rowsToDelete      []deliveryPosition // for the next checkpoint
	reportedBehind    int                // this partition's part of the metric trunkline_webhook_behind
	sendCtx           context.Context    // parent of the contexts of all senders

	mu       sync.Mutex
	tail     kafka.LogPosition // position before which all records were matched
	tailID   event.ID          // of the last event before tail; 0 if unknown
	backlogs map[string]*backlog
}

// run delivers until ctx ends or an error occurs, and returns that error. It returns nil
// if no webhooks are left.
func (w *partitionWorker) run(ctx context.Context) error {
	if !w.awaitWebhooks(ctx) {
		return ctx.Err()
	}

	w.hooks, w.backlogs = newWebhookSnapshot(nil), map[string]*backlog{}
	if err := w.retry(ctx, "taking over", func() error { return w.takeOver(ctx) }); err != nil {
		return err
	}

	var cancelSending context.CancelFunc
	w.sendCtx, cancelSending = context.WithCancel(ctx)
	defer w.shutDown(ctx, cancelSending)

	for {
		err := w.reconcile(ctx)
		if err == nil {
			err = w.follow(ctx)
		}
		if err == nil {
			return nil
		}

		gap, err := kafka.ConfirmGap(ctx, err, w.checkTail)
		if err == nil && gap != nil {
			err = w.retry(ctx, "skipping a gap", func() error { return w.skipGap(ctx, gap) })
		}
		if err != nil {
			return err
		}
	}
}

// awaitWebhooks waits until there are webhooks. It returns false if ctx ends first.
// Meanwhile the worker reads nothing and commits the end offset, so that the group's lag
// stays 0.
func (w *partitionWorker) awaitWebhooks(ctx context.Context) bool {
	for {
		current := w.registry.current.Load()
		if len(current.byID) > 0 {
			return true
		}

		_, end, err := w.events.Offsets(ctx, event.TopicEvents, w.partition)
		if err == nil {
			w.commit(end)
		}

		// The workers ask at one time, so that their lookups share requests.
		next := time.Now().Truncate(idleCommitInterval).Add(idleCommitInterval)
		timer := time.NewTimer(time.Until(next))
		select {
		case <-current.replaced:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}

		timer.Stop()
	}
}

// takeOver reads the position of the partition and fences the node that had it. If every
// webhook has its own stored position (true for a newly created first webhook), the
// worker starts at the log end.
func (w *partitionWorker) takeOver(ctx context.Context) error {
	from, found, err := w.service.positions.Find(ctx, w.service.db, w.partition)
	if err != nil {
		return err
	}

	rows, err := listPositions(ctx, w.service.db, w.partition)
	if err != nil {
		return err
	}

	first, end, err := w.events.Offsets(ctx, event.TopicEvents, w.partition)
	if err != nil {
		return err
	}

	allHavePositions := true
	for id, h := range w.registry.current.Load().byID {
		row, ok := rows[id]
		allHavePositions = allHavePositions && ok && row.generation == h.positionGeneration
	}

	if allHavePositions && found { // they are not valid after a recreation of the topic
		err := w.events.CheckPosition(ctx, event.TopicEvents, w.partition, from.LogPosition)
		gap, ok := kafka.PassableGap(err)
		if err != nil && !ok {
			return err
		}
		allHavePositions = !ok || !gap.ReusesOffsets()
	}

	to := from
	switch {
	case allHavePositions:
		to = consume.Position{LogPosition: kafka.AtOffset(end)}
	case !found: // a new partition
		to.LogPosition = kafka.AtOffset(first)
	}

	if to.TopicID.IsZero() {
		to.TopicID, err = w.events.TopicID(ctx, event.TopicEvents)
		if err != nil {
			return err
		}
	}

	err = w.service.db.Tx(ctx,
		func(tx *sql.Tx) error { return w.service.positions.Move(ctx, tx, w.partition, from, &to) })
	w.lastCheckpoint, w.storedAt = to, time.Now()
	w.tail, w.tailID = to.LogPosition, to.LastID

	return err
}

// follow reads and matches new records. It returns nil if no webhooks are left, and
// *kafka.GapError if records were lost.
func (w *partitionWorker) follow(ctx context.Context) error {
	if err := w.checkTail(ctx); err != nil {
		return err
	}

	reader := readEvents(w.events, w.partition, w.tail)
	defer reader.Close()

	for {
		if w.registry.current.Load() != w.hooks {
			err := w.reconcile(ctx)
			if err != nil || len(w.hooks.byID) == 0 {
				return err
			}
		}

		readCtx, cancel := context.WithTimeout(ctx, reconcileInterval)
		records, err := reader.Read(readCtx)
		cancel()

		if err != nil && (readCtx.Err() == nil || ctx.Err() != nil) {
			return err
		}

		w.dispatch(records, reader.Position())
		if time.Since(w.storedAt) >= checkpointInterval {
			err := w.checkpoint(ctx)
			// After other errors the next checkpoint stores the same and more.
			if errors.Is(err, consume.ErrMoved) {
				return err
			}
		}
	}
}

// checkTail returns *kafka.GapError if the log does not continue at the tail.
func (w *partitionWorker) checkTail(ctx context.Context) error {
	return w.retry(ctx, "checking the position",
		func() error { return w.events.CheckPosition(ctx, event.TopicEvents, w.partition, w.tail) })
}

// dispatch queues records for the webhooks that select them.
func (w *partitionWorker) dispatch(records []kafka.Record, tail kafka.LogPosition) {
	tree := w.registry.accounts.Tree()
	w.mu.Lock()
	defer w.mu.Unlock()

	for i := range records {
		r := &records[i]
		id, err := event.MessageID(r.Value)
		if err != nil || id <= w.tailID { // not a message of Trunkline, or a repeat
			continue
		}

		m, previousID := readFilterHeaders(r), w.tailID
		var d *delivery // created for the first webhook that needs it
		w.hooks.match(&m, tree, func(h *loadedWebhook) {
			b := w.backlogs[h.ID]
			if b == nil {
				b = &backlog{hook: h, followsReader: true, deliveredID: previousID, lastReadID: previousID}
				w.backlogs[h.ID] = b
			}
			if !b.followsReader || r.Offset < b.readUpTo || id <= b.lastReadID {
				return
			}
			if d == nil {
				d = &delivery{id, m.account, r.Offset, slices.Clone(r.Value)}
			}
			// If the queue is full, it reads by itself from this record on, until it has caught up.
			if !b.enqueue(d) {
				b.followsReader, b.readUpTo = false, r.Offset
			}

			w.startSending(b)
		})

		w.tailID = id
	}

	w.tail = tail
}

// shutDown ends all sender goroutines and stores the last positions.
func (w *partitionWorker) shutDown(ctx context.Context, cancelSending context.CancelFunc) {
	cancelSending()

	w.mu.Lock()
	backlogs := slices.Collect(maps.Values(w.backlogs))
	w.mu.Unlock()
	waitForSenders(backlogs)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()

	_ = w.checkpoint(ctx) // logs its error; events delivered since the last one are delivered again
	w.reportBehind(0)
}

// skipGap moves the tail behind a gap in the log. After truncation or recreation, later
// offsets hold different events, so every backlog resumes at gap.Resume at the latest.
func (w *partitionWorker) skipGap(ctx context.Context, gap *kafka.GapError) error {
	id, err := w.events.TopicID(ctx, event.TopicEvents)
	if err != nil {
		return err
	}

	w.reportGap(gap)

	w.mu.Lock()
	w.tail = gap.Position()
	w.tail.TopicID = id
	if gap.ReusesOffsets() {
		w.tailID = 0
		for _, b := range w.backlogs {
			next := min(b.resumeOffset(gap.Resume), gap.Resume)
			// In a new topic the old offsets mean nothing.
			if gap.Kind == kafka.GapRecreated {
				next = gap.Resume
			}
			w.replaceBacklog(b.hook, b, &backlog{readUpTo: next, storedRow: b.storedRow})
		}
	}
	w.mu.Unlock()

	return nil
}

// reportGap logs and counts a gap.
func (w *partitionWorker) reportGap(gap *kafka.GapError) {
	w.log.Error("events lost from the normalized log before they were read for webhooks", "partition", w.partition,
		"kind", gap.Kind, "resume", gap.Resume, "error", gap)
	w.metrics.lost.Add(float64(gap.Lost()))
}
