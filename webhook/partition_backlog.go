package webhook

import (
	"context"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// delivery is a message to send. It is immutable; the backlogs of several webhooks share
// it.
type delivery struct {
	id      event.ID
	account string
	offset  int64
	message []byte
}

// maxQueuedBytes bounds the queue of one backlog, in bytes of messages; an empty queue
// accepts one message of any size. Further messages are read from Kafka later.
const maxQueuedBytes = 64 << 10

// backlog has the events of one partition that a webhook has still to get. It exists while
// there are any, while the webhook is suspended, and while its position is after that of
// the partition's reader. A backlog that follows the reader gets its messages from it;
// any other reads those after its queue from Kafka. The worker's mu guards queue and the
// fields after it.
type backlog struct {
	hook   *loadedWebhook
	cancel context.CancelFunc // ends the sender goroutine
	done   chan struct{}      // closed when the sender goroutine has ended; nil before the first start

	queue         []*delivery
	queuedBytes   int      // bytes of queue
	followsReader bool     // queue has all its messages up to the reader's position
	readUpTo      int64    // offset before which all messages were queued; records before it are ignored
	lastReadID    event.ID // last event that was queued or not selected; events up to it are repeats
	deliveredID   event.ID // all events up to it were delivered
	isSending     bool
	storedRow     *deliveryPosition // row in the database; nil if there is none
}

// resumeOffset returns the offset at which the webhook resumes after a crash. tail is the
// offset of the partition's reader.
func (b *backlog) resumeOffset(tail int64) int64 {
	switch {
	case len(b.queue) > 0:
		return b.queue[0].offset
	case b.followsReader:
		return max(tail, b.readUpTo)
	}
	return b.readUpTo
}

// storedPosition returns the position of the backlog to store.
func (b *backlog) storedPosition(partition int, tail int64) deliveryPosition {
	return deliveryPosition{webhook: b.hook.ID, partition: partition, generation: b.hook.positionGeneration,
		next: b.resumeOffset(tail), lastID: b.deliveredID}
}

// isIdle reports whether the backlog can be removed: nothing is left to send and the
// webhook is at the offset of the reader.
func (b *backlog) isIdle(tail int64) bool {
	return !b.hook.suspended && !b.isSending && b.followsReader && len(b.queue) == 0 && b.readUpTo <= tail
}

// enqueue adds a message to the queue. It returns false if the queue is full.
func (b *backlog) enqueue(d *delivery) bool {
	if len(b.queue) > 0 && b.queuedBytes+len(d.message) > maxQueuedBytes {
		return false
	}
	b.queue, b.queuedBytes, b.lastReadID = append(b.queue, d), b.queuedBytes+len(d.message), d.id
	return true
}

// removeSent removes a message that was sent, unless the queue was dropped meanwhile.
func (b *backlog) removeSent(d *delivery) {
	if len(b.queue) == 0 || b.queue[0] != d {
		return
	}
	b.queue[0] = nil
	b.queue = b.queue[1:]
	if len(b.queue) == 0 {
		b.queue = nil
	}
	b.queuedBytes, b.deliveredID = b.queuedBytes-len(d.message), d.id
}

// dropQueue empties the queue. Its messages are read again from Kafka.
func (b *backlog) dropQueue(tail int64) {
	b.readUpTo, b.followsReader, b.lastReadID = b.resumeOffset(tail), false, b.deliveredID
	b.queue, b.queuedBytes = nil, 0
}

// cancelSending ends the sender goroutine. A running request may take finishTimeout more;
// its result is ignored.
func (b *backlog) cancelSending() {
	if b.cancel != nil {
		b.cancel()
	}
}

// scan reads events before the reader's offset, for one backlog. It calls handle for each record with
// from <= offset < to, until handle returns false. It returns the offset of the record for which handle returned
// false, or to.
func (w *partitionWorker) scan(ctx context.Context, from, to int64,
	handle func(*kafka.Record) bool) (next int64, err error) {
	reader := readEvents(w.events, w.partition, kafka.AtOffset(from))
	// The last one: a gap replaces the reader.
	defer func() { reader.Close() }()

	for from < to {
		records, err := reader.Read(ctx)
		if gap, ok := kafka.PassableGap(err); ok && !gap.ReusesOffsets() {
			w.reportGap(gap)
			from = gap.Resume
			reader.Close()
			reader = readEvents(w.events, w.partition, gap.Position())
			continue
		}

		if err != nil {
			return from, err
		}

		for i := range records {
			if records[i].Offset >= to {
				return to, nil
			}
			if !handle(&records[i]) {
				return records[i].Offset, nil
			}
		}

		from = reader.Position().Offset
	}

	return to, nil
}

// waitForSenders waits until the sender goroutines of all backlogs have ended.
func waitForSenders(backlogs []*backlog) {
	var senders sync.WaitGroup
	for _, b := range backlogs {
		if b.done != nil {
			senders.Go(func() { <-b.done })
		}
	}
	senders.Wait()
}
