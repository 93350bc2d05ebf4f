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
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

const (
	// checkpointEvery is how often positions are stored: what was delivered since is
	// delivered again after a crash.
	checkpointEvery = time.Second
	// lookEvery is how often a partition without events looks for changes of webhooks.
	lookEvery = 250 * time.Millisecond
	// idleCommit is how often a partition's end is committed while there are no webhooks.
	idleCommit = 10 * time.Second
	// stopTime is how long the last positions may take to be stored.
	stopTime = 3 * time.Second
)

// partitionBackoff is the waits of a worker before it tries again.
var partitionBackoff = retry.Backoff{First: 50 * time.Millisecond, Max: 5 * time.Second}

// partitionWorker delivers the events of one partition. One goroutine reads and
// matches; each backlog has one that sends.
type partitionWorker struct {
	*Deliverer
	partition int
	commit    func(next int64)

	// Of the goroutine that reads:
	hooks     *hooks
	stored    partitionPosition // as of the last checkpoint
	storedAt  time.Time
	failing   bool            // the last checkpoint failed
	forgotten []position      // positions whose rows a checkpoint has to delete
	counted   int             // in the metric
	sendAll   context.Context // of all backlogs' sending

	mu       sync.Mutex
	tail     kafka.LogPosition // everything before it was matched
	tailID   event.ID          // of the last event before tail; 0: not known
	backlogs map[string]*backlog
}

// run delivers until ctx ends, there are no webhooks any more (nil), or an error.
func (w *partitionWorker) run(ctx context.Context) error {
	if !w.awaitWebhooks(ctx) {
		return ctx.Err()
	}
	w.hooks, w.backlogs = newHooks(nil), map[string]*backlog{}
	if err := w.retry(ctx, "taking over", func() error { return w.takeOver(ctx) }); err != nil {
		return err
	}
	var stopSending context.CancelFunc
	w.sendAll, stopSending = context.WithCancel(ctx)
	defer w.stop(ctx, stopSending)
	for {
		err := w.reconcile(ctx)
		if err == nil {
			err = w.follow(ctx)
		}
		gap, ok := kafka.PassableGap(err)
		if !ok {
			return err
		}
		if err := w.retry(ctx, "going on behind a gap", func() error { return w.skip(ctx, gap) }); err != nil {
			return err
		}
	}
}

// awaitWebhooks waits until there are webhooks; false: ctx ended. Meanwhile nothing is
// read, and the group's lag is none.
func (w *partitionWorker) awaitWebhooks(ctx context.Context) bool {
	for {
		now := w.registry.current.Load()
		if len(now.byID) > 0 {
			return true
		}
		if _, end, err := w.topic.Offsets(ctx, w.partition); err == nil {
			w.commit(end)
		}
		tick := time.NewTimer(idleCommit)
		select {
		case <-now.replaced:
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return false
		}
		tick.Stop()
	}
}

// takeOver reads where the partition is and fences the node that had it. Where every
// webhook has a position of its own, as the first one has, it begins at the end.
func (w *partitionWorker) takeOver(ctx context.Context) error {
	at, found, err := findPartition(ctx, w.service.db, w.partition)
	if err != nil {
		return err
	}
	rows, err := listPositions(ctx, w.service.db, w.partition)
	if err != nil {
		return err
	}
	first, end, err := w.topic.Offsets(ctx, w.partition)
	if err != nil {
		return err
	}
	own := true // every webhook has a position
	for id, h := range w.registry.current.Load().byID {
		row, ok := rows[id]
		own = own && ok && row.seek == h.seek
	}
	if own && found { // unless the positions are of another log
		err := w.topic.CheckPosition(ctx, w.partition, at.next)
		gap, ok := kafka.PassableGap(err)
		if err != nil && !ok {
			return err
		}
		own = !ok || !gap.Restarted()
	}
	switch {
	case own:
		at.next, at.lastID = atOffset(end), 0
	case !found: // a new partition
		at.next = atOffset(first)
	}
	if at.next.TopicID.IsZero() {
		if at.next.TopicID, err = w.topic.TopicID(ctx); err != nil {
			return err
		}
	}
	err = w.service.db.Tx(ctx, func(tx *sql.Tx) error { return takePartition(ctx, tx, w.partition, &at) })
	w.stored, w.storedAt = at, time.Now()
	w.tail, w.tailID = at.next, at.lastID
	return err
}

// follow reads and matches what comes. Returns *kafka.GapError where the log does not
// go on.
func (w *partitionWorker) follow(ctx context.Context) error {
	if err := w.retry(ctx, "checking the position", func() error { return w.topic.CheckPosition(ctx, w.partition, w.tail) }); err != nil {
		return err
	}
	reader := w.topic.Read(w.partition, w.tail)
	defer reader.Close()
	for {
		if w.registry.current.Load() != w.hooks {
			if err := w.reconcile(ctx); err != nil || len(w.hooks.byID) == 0 {
				return err
			}
		}
		look, cancel := context.WithTimeout(ctx, lookEvery)
		records, err := reader.Read(look)
		cancel()
		if err != nil && (look.Err() == nil || ctx.Err() != nil) {
			return err
		}
		w.dispatch(records, reader.Position())
		if time.Since(w.storedAt) >= checkpointEvery {
			if err := w.checkpoint(ctx); errors.Is(err, errFenced) {
				return err
			}
		}
	}
}

// dispatch gives records to the webhooks that select them.
func (w *partitionWorker) dispatch(records []kafka.Record, tail kafka.LogPosition) {
	tree := w.registry.accounts.Tree()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range records {
		r := &records[i]
		id, err := event.MessageID(r.Value)
		if err != nil || id <= w.tailID { // of another program; a repeat
			continue
		}
		m, before := readHeaders(r), w.tailID
		var d *delivery // made when somebody wants it
		w.hooks.match(&m, tree, func(h *hook) {
			b := w.backlogs[h.ID]
			if b == nil {
				b = &backlog{hook: h, follows: true, doneID: before, readID: before}
				w.backlogs[h.ID] = b
			}
			if !b.follows || r.Offset < b.readTo || id <= b.readID {
				return
			}
			if d == nil {
				d = &delivery{id, m.account, r.Offset, slices.Clone(r.Value)}
			}
			if !b.take(d) {
				b.follows, b.readTo = false, r.Offset
			}
			w.startSending(b)
		})
		w.tailID = id
	}
	w.tail = tail
}

// startSending sends what the backlog has, unless that is under way. It needs mu.
func (w *partitionWorker) startSending(b *backlog) {
	if b.sending || b.hook.held {
		return
	}
	b.sending = true
	previous := b.done
	ctx, cancel := context.WithCancel(w.sendAll)
	done := make(chan struct{})
	b.cancel, b.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		if previous != nil { // of the same webhook, so that its order holds
			<-previous
		}
		w.send(ctx, b)
	}()
}

// reconcile takes the webhooks as they are now. What has changed goes on from where it
// is; what was moved by a retry from there.
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
		if now.byID[id] == nil { // its rows are gone too
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
		case before == nil || before.seek != h.seek: // not known here until now, or moved
			if stored && row.seek == h.seek {
				w.replace(h, b, &backlog{readTo: row.next, readID: row.lastID, doneID: row.lastID, stored: &row})
			} else if b != nil || h.held {
				w.replace(h, b, &backlog{readTo: w.tail.Offset, readID: w.tailID, doneID: w.tailID})
			}
		case b != nil:
			b.drop(w.tail.Offset)
			w.replace(h, b, &backlog{readTo: b.readTo, readID: b.doneID, doneID: b.doneID, stored: b.stored})
		case h.held:
			w.replace(h, nil, &backlog{readTo: w.tail.Offset, readID: w.tailID, doneID: w.tailID})
		}
	}
	w.hooks = now
	return nil
}

// replace puts a backlog in place of old, which may be nil. It needs mu.
func (w *partitionWorker) replace(h *hook, old, b *backlog) {
	if b.hook = h; old != nil {
		old.stop()
		b.done = old.done
	}
	w.backlogs[h.ID] = b
	w.startSending(b)
}

// stop ends the sending; what is under way has finishTime to end, and no influence.
func (b *backlog) stop() {
	if b.cancel != nil {
		b.cancel()
	}
}

// checkpoint stores the positions. Backlogs with nothing left are removed.
func (w *partitionWorker) checkpoint(ctx context.Context) error {
	to, behind := w.collect()
	w.storedAt = time.Now()
	if len(behind) == 0 && len(w.forgotten) == 0 && to.next == w.stored.next {
		return nil
	}
	err := w.service.db.Tx(ctx, func(tx *sql.Tx) error { return storeCheckpoint(ctx, tx, w.partition, to, w.forgotten, behind) })
	switch {
	case err == nil:
		to.version++
		w.stored, w.forgotten = to, nil
		w.noteStored(behind)
		w.commit(to.next.Offset)
	case !w.failing && ctx.Err() == nil && !errors.Is(err, errFenced):
		w.log.Warn("storing webhooks' positions failed, retrying", "partition", w.partition, "error", err)
	}
	w.failing = err != nil
	return err
}

// collect returns the partition's position and those of backlogs that differ from
// what is stored. It moves the rows of backlogs that it removes to forgotten.
func (w *partitionWorker) collect() (to partitionPosition, behind []position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	to = partitionPosition{next: w.tail, lastID: w.tailID, version: w.stored.version}
	count := 0
	for id, b := range w.backlogs {
		if b.idle(to.next.Offset) {
			if b.stored != nil {
				w.forgotten = append(w.forgotten, *b.stored)
			}
			delete(w.backlogs, id)
			continue
		}
		if !b.hook.held {
			count++
		}
		if at := b.position(w.partition, to.next.Offset); b.stored == nil || *b.stored != at {
			behind = append(behind, at)
		}
	}
	w.countBehind(count)
	return to, behind
}

// noteStored notes what a checkpoint has stored.
func (w *partitionWorker) noteStored(behind []position) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range behind {
		if b := w.backlogs[at.webhook]; b != nil {
			b.stored = &at
		}
	}
}

// stop ends all sending and stores the last positions.
func (w *partitionWorker) stop(ctx context.Context, stopSending context.CancelFunc) {
	stopSending()
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.backlogs))
	w.mu.Unlock()
	waitAll(all)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	_ = w.checkpoint(ctx) // it has logged why; what was delivered since the last is delivered again
	w.countBehind(0)
}

// skip goes on behind a gap in the log. Where the log was cut, all that was to be read
// from there on is other events.
func (w *partitionWorker) skip(ctx context.Context, gap *kafka.GapError) error {
	id, err := w.topic.TopicID(ctx)
	if err != nil {
		return err
	}
	w.lost(gap)
	w.mu.Lock()
	w.tail = gap.Position()
	w.tail.TopicID = id
	if gap.Restarted() {
		w.tailID = 0
		for _, b := range w.backlogs {
			next := min(b.next(gap.Resume), gap.Resume)
			if gap.Kind == kafka.GapRecreated {
				next = gap.Resume
			}
			w.replace(b.hook, b, &backlog{readTo: next, stored: b.stored})
		}
	}
	w.mu.Unlock()
	return nil
}

// lost logs and counts a gap.
func (w *partitionWorker) lost(gap *kafka.GapError) {
	w.log.Error("events lost from the normalized log before they were read for webhooks", "partition", w.partition, "kind", gap.Kind, "resume", gap.Resume, "error", gap)
	w.metrics.lost.Add(float64(gap.Lost()))
}

// countBehind changes this partition's part of the metric.
func (w *partitionWorker) countBehind(count int) {
	w.metrics.behind.Add(float64(count - w.counted))
	w.counted = count
}

// retry calls do until it does not fail with fault.KindUnavailable, with growing waits
// between. It returns ctx's error when ctx ends.
func (w *partitionWorker) retry(ctx context.Context, doing string, do func() error) error {
	return retry.Do(ctx, partitionBackoff, fault.IsUnavailable, func(err error, wait time.Duration) {
		w.log.Warn("delivery of webhooks waits", "doing", doing, "partition", w.partition, "wait", wait, "error", err)
	}, do)
}
