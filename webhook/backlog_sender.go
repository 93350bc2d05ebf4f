package webhook

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/sqldb"
)

// maxWaitWithQueue is the wait for the next attempt above which a backlog drops its queue
// and reads the messages again later.
const maxWaitWithQueue = 10 * time.Second

// startSending starts the backlog's sender goroutine if none runs and the webhook is not
// suspended. The caller holds mu.
func (w *partitionWorker) startSending(b *backlog) {
	if b.isSending || b.hook.suspended {
		return
	}

	b.isSending = true
	previous := b.done
	ctx, cancel := context.WithCancel(w.sendCtx)

	done := make(chan struct{})
	b.cancel, b.done = cancel, done
	go func() {
		defer close(done)
		defer cancel()
		if previous != nil { // one sender at a time keeps the order
			<-previous
		}
		w.sendBacklog(ctx, b)
	}()
}

// sendBacklog sends the messages of a backlog until none is left, ctx ends or the webhook
// is paused.
func (w *partitionWorker) sendBacklog(ctx context.Context, b *backlog) {
	backoff := retry.NewBackendBackoff()
	for {
		d, hasOlder := w.nextDelivery(b)
		switch {
		case d != nil:
			if !w.attempt(ctx, b, d) {
				w.endSending(b)
				return
			}
		case !hasOlder:
			return
		default:
			err := w.readOlder(ctx, b)
			if err == nil {
				backoff.Reset()
				continue
			}

			if ctx.Err() == nil {
				w.log.Warn("reading events for a webhook failed, retrying", "webhook", b.hook.ID,
					"partition", w.partition, "error", err)
			}
			if !backoff.Wait(ctx) {
				w.endSending(b)
				return
			}
		}
	}
}

// nextDelivery returns the first message of the queue. If the queue is empty, hasOlder is true
// if messages must be read from Kafka; otherwise the backlog follows the reader from now
// on, and its sender goroutine ends.
func (w *partitionWorker) nextDelivery(b *backlog) (d *delivery, hasOlder bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if len(b.queue) > 0 {
		return b.queue[0], true
	}
	if !b.followsReader && b.readUpTo < w.tail.Offset {
		return nil, true
	}

	b.followsReader, b.isSending = true, false
	return nil, false
}

func (w *partitionWorker) endSending(b *backlog) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.isSending = false
}

// readOlder fills the queue from Kafka with messages before the reader's offset.
func (w *partitionWorker) readOlder(ctx context.Context, b *backlog) error {
	select {
	case w.scanSlots <- struct{}{}:
		defer func() { <-w.scanSlots }()
	case <-ctx.Done():
		return ctx.Err()
	}

	w.mu.Lock()
	from, to, readID := b.readUpTo, w.tail.Offset, b.lastReadID
	w.mu.Unlock()

	tree := w.registry.accounts.Tree()
	var found []*delivery
	size := 0
	// Without the lock: a backlog that does not follow the reader gets nothing from dispatch meanwhile.
	next, err := w.scan(ctx, from, to, func(r *kafka.Record) bool {
		id, err := event.MessageID(r.Value)
		if err != nil || id <= readID {
			return true
		}

		m := readFilterHeaders(r)
		if b.hook.selects(&m, tree) {
			if len(found) > 0 && size+len(r.Value) > maxQueuedBytes {
				return false
			}
			found, size = append(found, &delivery{id, m.account, r.Offset, slices.Clone(r.Value)}), size+len(r.Value)
		}

		readID = id
		return true
	})

	w.mu.Lock()
	defer w.mu.Unlock()

	b.queue, b.queuedBytes = append(b.queue, found...), b.queuedBytes+size
	b.readUpTo, b.lastReadID = next, readID
	return err
}

// attempt sends d, the first message of the queue, once. It returns false if the sender
// goroutine must end, because ctx has ended or the webhook is paused.
func (w *partitionWorker) attempt(ctx context.Context, b *backlog, d *delivery) bool {
	h := b.hook
	if !h.receiver.beginRequest(ctx) {
		return false
	}

	startedAt := time.Now()
	o := w.sender.send(ctx, h, d)
	failuresBefore, failures := h.receiver.endRequest(o)

	if o.unsent {
		return false
	}

	w.metrics.seconds.Observe(time.Since(startedAt).Seconds())
	w.metrics.requests.WithLabelValues(o.label).Inc()
	if o.ok {
		w.mu.Lock()
		b.removeSent(d)
		w.mu.Unlock()

		if failuresBefore > 0 {
			w.storeState(ctx, func(q sqldb.Runner) error { return storeRecovery(ctx, q, h.ID, h.retries) })
		}

		return true
	}

	next := h.receiver.nextTry()
	w.log.Debug("webhook failed", "webhook", h.ID, "account", h.AccountID, "event", d.id, "failures", failures,
		"reason", o.message)

	if o.gone || failures >= w.settings.pauseAfter() {
		w.pause(ctx, h, failures, o)
		return true // the next beginRequest returns false
	}

	w.storeState(ctx, func(q sqldb.Runner) error {
		return storeFailure(ctx, q, h.ID, h.retries, failures, o.message, startedAt, next)
	})

	if time.Until(next) > maxWaitWithQueue {
		w.mu.Lock()
		b.dropQueue(w.tail.Offset)
		w.mu.Unlock()
	}

	return true
}

// pause stops all attempts of a webhook on all nodes. If that cannot be stored, attempts
// continue with the longest wait between them.
func (w *partitionWorker) pause(ctx context.Context, h *loadedWebhook, failures int, o requestResult) {
	var paused bool
	// Also by a worker that ends: the receiver has answered.
	err := w.service.db.Tx(context.WithoutCancel(ctx), func(tx *sql.Tx) (err error) {
		paused, err = storePause(ctx, tx, h.ID, h.retries, failures, o.message, time.Now())
		return err
	})
	if err != nil {
		w.log.Warn("pausing a webhook failed", "webhook", h.ID, "error", err)
		return
	}

	h.receiver.pause()
	if paused {
		w.metrics.pauses.Inc()
		w.log.Warn("webhook paused", "webhook", h.ID, "account", h.AccountID, "failures", failures, "reason", o.message)
	}
}

// storeState calls store, which stores the delivery state that the API shows. It only
// logs an error.
func (w *partitionWorker) storeState(ctx context.Context, store func(sqldb.Runner) error) {
	err := w.service.db.WithoutTx(ctx, store)
	if err != nil && ctx.Err() == nil {
		w.log.Warn("storing the state of a webhook failed", "error", err)
	}
}
