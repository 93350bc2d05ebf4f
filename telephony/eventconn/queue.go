package eventconn

import "sync"

// Queue is the queue between a connection's reader and the caller that takes its events. It is bounded
// by number and by memory. Its methods may be called concurrently.
type Queue[E any] struct {
	maxEvents, maxBytes int
	size                func(E) int   // the memory of an event, in bytes
	arrived             chan struct{} // holds a token while the queue may have events

	mu     sync.Mutex
	events []E
	bytes  int // memory of events
}

// NewQueue returns an empty queue with its limits. size returns the memory that an event takes, in bytes.
func NewQueue[E any](maxEvents, maxBytes int, size func(E) int) *Queue[E] {
	return &Queue[E]{maxEvents: maxEvents, maxBytes: maxBytes, size: size, arrived: make(chan struct{}, 1)}
}

// Put adds an event and reports whether there was room for it.
func (q *Queue[E]) Put(e E) bool {
	size := q.size(e)
	q.mu.Lock()
	defer q.mu.Unlock()

	if len(q.events) >= q.maxEvents || q.bytes+size > q.maxBytes {
		return false
	}

	q.events = append(q.events, e)
	q.bytes += size
	select {
	case q.arrived <- struct{}{}:
	default:
	}

	return true
}

// takeAll returns all events and empties the queue.
func (q *Queue[E]) takeAll() []E {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events, q.bytes = nil, 0
	return events
}
