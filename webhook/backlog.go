package webhook

import (
	"context"
	"sync"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// delivery is a message to be sent. It is immutable; webhooks share it.
type delivery struct {
	id      event.ID
	account string
	offset  int64
	message []byte
}

// maxQueuedBytes bounds the messages that wait in memory for one webhook and partition, in
// bytes; one message is always taken. The others wait in Kafka.
const maxQueuedBytes = 64 << 10

// backlog is the events of one partition that a webhook has still to get. It exists while
// there are any, while the webhook is suspended, and while its position is after that of
// the partition's reader. Messages after its queue are read from Kafka, unless it follows
// the reader. The worker's mu guards queue and the fields after it.
type backlog struct {
	hook   *hook
	cancel context.CancelFunc // ends the sending
	done   chan struct{}      // closed when the sending has ended; nil before the first start

	queue         []*delivery
	queuedBytes   int      // bytes of queue
	followsReader bool     // queue has everything up to the reader's position
	readUpTo      int64    // everything before it was taken; a backlog that follows ignores records before it
	lastReadID    event.ID // of the last event taken or not selected; events up to it are repeats
	deliveredID   event.ID // everything up to it was delivered
	isSending     bool
	stored        *position // the row in the database; nil if there is none
}

// resumeOffset returns the offset at which the webhook resumes after a crash. tail is the
// position of the partition's reader.
func (b *backlog) resumeOffset(tail int64) int64 {
	switch {
	case len(b.queue) > 0:
		return b.queue[0].offset
	case b.followsReader:
		return max(tail, b.readUpTo)
	}
	return b.readUpTo
}

// position returns the position of the backlog, as it is stored.
func (b *backlog) position(partition int, tail int64) position {
	return position{webhook: b.hook.ID, partition: partition, generation: b.hook.positionGeneration, next: b.resumeOffset(tail), lastID: b.deliveredID}
}

// isIdle reports whether nothing is left and the webhook is at the position of the reader.
func (b *backlog) isIdle(tail int64) bool {
	return !b.hook.suspended && !b.isSending && b.followsReader && len(b.queue) == 0 && b.readUpTo <= tail
}

// enqueue adds a message to the queue. It returns false when the queue is full.
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
	if b.queue = b.queue[1:]; len(b.queue) == 0 {
		b.queue = nil
	}
	b.queuedBytes, b.deliveredID = b.queuedBytes-len(d.message), d.id
}

// dropQueue drops the queue. Its messages are read again from Kafka.
func (b *backlog) dropQueue(tail int64) {
	b.readUpTo, b.followsReader, b.lastReadID = b.resumeOffset(tail), false, b.deliveredID
	b.queue, b.queuedBytes = nil, 0
}

// cancelSending ends the sending. A running request gets finishTimeout; its result is ignored.
func (b *backlog) cancelSending() {
	if b.cancel != nil {
		b.cancel()
	}
}

// scanner reads older events of a partition for one backlog.
type scanner struct {
	openReader func(from kafka.LogPosition) Reader
	onGap      func(*kafka.GapError)
}

// scan calls take for each record from offset from to before to, until it returns
// false. It returns the offset of the record that was not taken, or to.
func (s scanner) scan(ctx context.Context, from, to int64, handle func(*kafka.Record) bool) (next int64, err error) {
	reader := s.openReader(atOffset(from))
	defer func() { reader.Close() }()
	for from < to {
		records, err := reader.Read(ctx)
		if gap, ok := kafka.PassableGap(err); ok && !gap.Restarted() {
			s.onGap(gap)
			from = gap.Resume
			reader.Close()
			reader = s.openReader(gap.Position())
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

// waitForSenders waits until the sending of all backlogs has ended.
func waitForSenders(backlogs []*backlog) {
	var senders sync.WaitGroup
	for _, b := range backlogs {
		if b.done != nil {
			senders.Go(func() { <-b.done })
		}
	}
	senders.Wait()
}
