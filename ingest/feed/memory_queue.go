package feed

import (
	"context"
	"sync"
)

// memoryQueue is the queue of a session whose platform stores events until they are acknowledged. Its
// size is bounded by the platform's limit of unacknowledged events.
type memoryQueue struct {
	session  Acknowledger
	appended chan struct{} // capacity 1: records were added

	mu      sync.Mutex
	entries []queueEntry
	first   int64 // position of the first entry
}

func newMemoryQueue(session Acknowledger) *memoryQueue {
	return &memoryQueue{session: session, appended: make(chan struct{}, 1)}
}

// Append adds records.
func (q *memoryQueue) Append(entries []queueEntry) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries = append(q.entries, entries...)
	signal(q.appended)
	return nil
}

// End returns the position after the last record.
func (q *memoryQueue) End() queuePosition {
	q.mu.Lock()
	defer q.mu.Unlock()
	return queuePosition{0, q.first + int64(len(q.entries))}
}

// Next returns the records before limit and the position after them.
func (q *memoryQueue) Next(limit queuePosition) ([]queueEntry, queuePosition, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.entries) && q.first+int64(n) < limit.offset && size < batchBytes {
		size += len(q.entries[n].record.Value)
		n++
	}
	return q.entries[:n:n], queuePosition{0, q.first + int64(n)}, nil
}

// Done acknowledges the records before p to the platform.
func (q *memoryQueue) Done(ctx context.Context, p queuePosition) error {
	q.mu.Lock()
	n := p.offset - q.first
	last := q.entries[n-1].delivery
	q.entries, q.first = q.entries[n:], p.offset
	q.mu.Unlock()
	return q.session.Acknowledge(ctx, last)
}

// Wake returns a channel that receives a value after records were added.
func (q *memoryQueue) Wake() <-chan struct{} { return q.appended }
