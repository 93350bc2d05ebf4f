// Package rounds lets callers share work that costs little more for many than for one: an fsync, a
// statement, a request. What they ask for during a round is done by the next one, all together. A Queue has
// one goroutine while something waits.
package rounds

import (
	"context"
	"sync"
	"time"
)

// Queue does work in rounds, one at a time, in the order of Add. It is safe for concurrent use.
type Queue[T any] struct {
	// Run does the work of a round. Its error is that of all of its items.
	Run func(items []T) error
	// Max bounds the items of a round; 0 does not.
	Max int
	// Rest, if set, returns the time between a round that took so long and the next one, in which more
	// items come together.
	Rest func(took time.Duration) time.Duration

	mu      sync.Mutex
	waiting []*Round[T]   // that have not begun, the next one first
	ended   chan struct{} // closed when the goroutine ends; nil: none runs

	nextAt time.Time // earliest time of the next round; only the goroutine uses it
}

// Round is what an item waits for.
type Round[T any] struct {
	items []T
	done  chan struct{} // closed after err is set
	err   error
}

// Add adds items to one round, which begins after the call. They may be more than Max.
func (q *Queue[T]) Add(items ...T) *Round[T] {
	q.mu.Lock()
	defer q.mu.Unlock()

	last := len(q.waiting) - 1
	// A round leaves waiting before it begins, so the items of this call cannot be late for theirs.
	if last < 0 || q.Max > 0 && len(q.waiting[last].items) >= q.Max {
		q.waiting = append(q.waiting, &Round[T]{done: make(chan struct{})})
		last++
	}

	r := q.waiting[last]
	r.items = append(r.items, items...)

	if q.ended == nil {
		q.ended = make(chan struct{})
		go q.work()
	}

	return r
}

// Do adds an item and waits for its round.
func (q *Queue[T]) Do(ctx context.Context, item T) error { return q.Add(item).Wait(ctx) }

// Wait waits for the round and returns its error, or that of ctx if ctx ends before.
func (r *Round[T]) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Settle waits until no item waits and no round runs.
func (q *Queue[T]) Settle() {
	q.mu.Lock()
	ended := q.ended
	q.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

// work runs rounds until nothing waits.
func (q *Queue[T]) work() {
	for {
		time.Sleep(time.Until(q.nextAt))
		r := q.nextRound()
		if r == nil {
			return
		}

		began := time.Now()
		r.err = q.Run(r.items)
		if q.Rest != nil {
			now := time.Now()
			q.nextAt = now.Add(q.Rest(now.Sub(began)))
		}

		close(r.done)
	}
}

// nextRound takes the next round; nil if nothing waits: the goroutine must end then.
func (q *Queue[T]) nextRound() *Round[T] {
	q.mu.Lock()
	defer q.mu.Unlock()

	if len(q.waiting) == 0 {
		// Under the lock of Add, which starts another goroutine if it comes after this.
		close(q.ended)
		q.waiting, q.ended = nil, nil
		return nil
	}

	r := q.waiting[0]
	q.waiting = q.waiting[1:]
	return r
}
