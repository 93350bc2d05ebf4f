package esl

import "sync"

// queue is a queue of events from the reader to the caller, bounded by number and by bytes.
type queue struct {
	maxEvents, maxBytes int
	arrived             chan struct{} // holds a token while the queue may have events

	mu     sync.Mutex
	events []*Event
	bytes  int
}

func newQueue(maxEvents, maxBytes int) *queue {
	return &queue{maxEvents: maxEvents, maxBytes: maxBytes, arrived: make(chan struct{}, 1)}
}

// put adds an event and reports whether there was room for it.
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

// take returns all events and empties the queue.
func (q *queue) take() []*Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	events := q.events
	q.events, q.bytes = nil, 0
	return events
}
