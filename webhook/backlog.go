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

// backlog is what one webhook has still to get of one partition. It exists while there
// is anything, while the webhook is paused, and while the webhook is ahead of the
// partition's reader. It goes on in Kafka where its queue ends, unless it follows the
// reader. Fields below mu are guarded by the worker's mu.
type backlog struct {
	hook   *hook
	cancel context.CancelFunc // ends the sending
	done   chan struct{}      // closed when it has ended; nil: never started

	queue   []*delivery
	queued  int      // bytes of queue
	follows bool     // queue has everything up to the reader's position
	readTo  int64    // up to where everything was taken; of one that follows: what to leave out before
	readID  event.ID // of the last event taken or passed over: others up to it are repeats
	doneID  event.ID // all up to it is delivered
	sending bool
	stored  *position // the row in the database; nil: none
}

// next returns the offset at which the webhook goes on after a crash, when the
// partition's reader is at tail.
func (b *backlog) next(tail int64) int64 {
	switch {
	case len(b.queue) > 0:
		return b.queue[0].offset
	case b.follows:
		return max(tail, b.readTo)
	}
	return b.readTo
}

// position returns what is stored of the backlog.
func (b *backlog) position(partition int, tail int64) position {
	return position{webhook: b.hook.ID, partition: partition, seek: b.hook.seek, next: b.next(tail), lastID: b.doneID}
}

// idle reports whether nothing is left and the webhook is where the reader is.
func (b *backlog) idle(tail int64) bool {
	return !b.hook.held && !b.sending && b.follows && len(b.queue) == 0 && b.readTo <= tail
}

// take adds a message to the queue. It returns false where there is no room.
func (b *backlog) take(d *delivery) bool {
	if len(b.queue) > 0 && b.queued+len(d.message) > maxQueued {
		return false
	}
	b.queue, b.queued, b.readID = append(b.queue, d), b.queued+len(d.message), d.id
	return true
}

// sent removes a message that was sent, unless the queue was given up meanwhile.
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

// drop gives up the queue: it is read again.
func (b *backlog) drop(tail int64) {
	b.readTo, b.follows, b.readID = b.next(tail), false, b.doneID
	b.queue, b.queued = nil, 0
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
