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

// maxQueued bounds the messages that wait in memory for one webhook and partition, in
// bytes; one message is always taken. The others wait in Kafka.
const maxQueued = 64 << 10

// backlog is the events of one partition that a webhook has still to get. It exists while
// there are any, while the webhook is suspended, and while its position is after that of
// the partition's reader. Messages after its queue are read from Kafka, unless it follows
// the reader. The worker's mu guards queue and the fields after it.
type backlog struct {
	hook   *hook
	cancel context.CancelFunc // ends the sending
	done   chan struct{}      // closed when the sending has ended; nil before the first start

	queue   []*delivery
	queued  int      // bytes of queue
	follows bool     // queue has everything up to the reader's position
	readTo  int64    // everything before it was taken; a backlog that follows ignores records before it
	readID  event.ID // of the last event taken or not selected; events up to it are repeats
	doneID  event.ID // everything up to it was delivered
	sending bool
	stored  *position // the row in the database; nil if there is none
}

// next returns the offset at which the webhook resumes after a crash. tail is the
// position of the partition's reader.
func (b *backlog) next(tail int64) int64 {
	switch {
	case len(b.queue) > 0:
		return b.queue[0].offset
	case b.follows:
		return max(tail, b.readTo)
	}
	return b.readTo
}

// position returns the position of the backlog, as it is stored.
func (b *backlog) position(partition int, tail int64) position {
	return position{webhook: b.hook.ID, partition: partition, generation: b.hook.positionGeneration, next: b.next(tail), lastID: b.doneID}
}

// idle reports whether nothing is left and the webhook is at the position of the reader.
func (b *backlog) idle(tail int64) bool {
	return !b.hook.suspended && !b.sending && b.follows && len(b.queue) == 0 && b.readTo <= tail
}

// take adds a message to the queue. It returns false when the queue is full.
func (b *backlog) take(d *delivery) bool {
	if len(b.queue) > 0 && b.queued+len(d.message) > maxQueued {
		return false
	}
	b.queue, b.queued, b.readID = append(b.queue, d), b.queued+len(d.message), d.id
	return true
}

// sent removes a message that was sent, unless the queue was dropped meanwhile.
func (b *backlog) sent(d *delivery) {
	if len(b.queue) == 0 || b.queue[0] != d {
		return
	}
	b.queue[0] = nil
	if b.queue = b.queue[1:]; len(b.queue) == 0 {
		b.queue = nil
	}
	b.queued, b.doneID = b.queued-len(d.message), d.id
}

// drop drops the queue. Its messages are read again from Kafka.
func (b *backlog) drop(tail int64) {
	b.readTo, b.follows, b.readID = b.next(tail), false, b.doneID
	b.queue, b.queued = nil, 0
}

// stop ends the sending. A running request gets finishTimeout; its result is ignored.
func (b *backlog) stop() {
	if b.cancel != nil {
		b.cancel()
	}
}

// scanner reads older events of a partition for one backlog.
type scanner struct {
	read func(from kafka.LogPosition) Reader
	lost func(*kafka.GapError)
}

// scan calls take for each record from offset from to before to, until it returns
// false. It returns the offset of the record that was not taken, or to.
func (s scanner) scan(ctx context.Context, from, to int64, take func(*kafka.Record) bool) (next int64, err error) {
	reader := s.read(atOffset(from))
	defer func() { reader.Close() }()
	for from < to {
		records, err := reader.Read(ctx)
		if gap, ok := kafka.PassableGap(err); ok && !gap.Restarted() {
			s.lost(gap)
			from = gap.Resume
			reader.Close()
			reader = s.read(gap.Position())
			continue
		}
		if err != nil {
			return from, err
		}
		for i := range records {
			if records[i].Offset >= to {
				return to, nil
			}
			if !take(&records[i]) {
				return records[i].Offset, nil
			}
		}
		from = reader.Position().Offset
	}
	return to, nil
}

// waitAll waits until the sending of all backlogs has ended.
func waitAll(all []*backlog) {
	var waiting sync.WaitGroup
	for _, b := range all {
		if b.done != nil {
			waiting.Go(func() { <-b.done })
		}
	}
	waiting.Wait()
}
