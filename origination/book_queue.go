package origination

import (
	"context"

	"trunkline/internal/sqldb"
)

// write has the call written. b.mu is held.
func (b *book) write(e *entry) {
	if !e.waiting {
		e.waiting = true
		b.dirty = append(b.dirty, e)
		wake(b.toWrite)
	}
}

// writeNow has the call written before those that nobody waits for; what is
// sent says when it was, or why not. b.mu is held.
func (b *book) writeNow(e *entry) outcome {
	written := make(chan error, 1)
	e.written = append(e.written, written)
	e.waiting = true
	b.urgent = append(b.urgent, e)
	wake(b.toWrite)
	return written
}

// job is a statement that shares the book's transactions.
type job struct {
	statement func(context.Context, sqldb.Runner) error
	done      func(error)
}

// together runs a statement in the next transaction.
func (b *book) together(statement func(context.Context, sqldb.Runner) error, done func(error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jobs = append(b.jobs, job{statement, done})
	wake(b.toWrite)
}

// announce has the stored steps announced. b.mu is held.
func (b *book) announce(e *entry) {
	if e.placed && !e.hearing && !e.forget && e.Call.ID != "" && e.Announced < e.stored {
		e.hearing = true
		b.heard = append(b.heard, e)
		wake(b.toAnnounce)
	}
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// pending is an entry that is being written, as it was when the writing began.
type pending struct {
	*entry
	image   image
	written []chan error
}

func (b *book) takeDirty() (batch []pending, jobs []job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	jobs, b.jobs = b.jobs, nil
	batch, b.urgent = take(batch, b.urgent)
	batch, b.dirty = take(batch, b.dirty)
	return batch, jobs
}

// take moves entries that wait from queue to batch while there is room.
func take(batch []pending, queue []*entry) (taken []pending, left []*entry) {
	for i, e := range queue {
		if len(batch) == mostWritten {
			return batch, append(queue[:0], queue[i:]...)
		}
		if e.waiting {
			batch = append(batch, pending{e, image{e.row, e.forget, e.whole}, e.written})
			e.waiting, e.whole, e.written = false, false, nil
		}
	}
	return batch, queue[:0]
}
