package esl

import "sync"

// queue holds events from the reader to the caller, bounded in number and in
// bytes.
type queue struct {
	maxEvents, maxBytes int
	arrived             chan struct{} // holds one token while the queue may hold events

	mu     sync.Mutex
	events []*Event
	bytes  int
}

func newQueue(maxEvents, maxBytes int) *queue {
	return &queue{maxEvents: maxEvents, maxBytes: maxBytes, arrived: make(chan struct{}, 1)}
}

// put says whether there was room.
func (q *queue) put(e *Event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) >= q.maxEvents || q.bytes+e.size > q.maxBytes {
		return false
	}
	q.events = append(q.events, e)
	q.bytes += e.size
	select {
	case q.arrived <- struct{}{}:
	default:
	}
	return true
}

// take empties the queue.
func (q *queue) take() []*Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events, q.bytes = nil, 0
	return events
}
