package fanout

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// traces records one span per node for each event of a sampled trace, from the read to
// the last socket write.
type traces struct {
	tracer       *tracing.Tracer // nil disables tracing
	waitingCount atomic.Int64    // len(waiting), usually 0; lets recordFlushed return early

	mu      sync.Mutex                     // after index.mu, before subscriber.mu
	waiting map[*subscriber][]*tracedEvent // traced events still queued, by subscriber
}

// tracedEvent is an event of a sampled trace. The fields after offset are guarded
// by traces.mu.
type tracedEvent struct {
	span   tracing.Span
	offset int64

	id         event.ID
	pending    map[*subscriber]struct{} // subscribers that have it in their queue
	matched    int                      // subscribers that it was pushed to
	written    int                      // those of them that it was written to
	dispatched bool                     // it has been pushed to all subscribers
	timeout    *time.Timer
}

// traceTimeout is the time for which a span stays open for slow sockets.
const traceTimeout = 10 * time.Second

// startSpans begins spans for records just read. Usually none is sampled.
func (t *traces) startSpans(records []kafka.Record) (found tracedEvents) {
	if t.tracer == nil {
		return nil
	}

	for i := range records {
		span := t.tracer.StartDelivery(&records[i], event.TopicEvents)
		if span.Sampled() {
			found = append(found, &tracedEvent{span: span, offset: records[i].Offset})
		}
	}

	return found
}

// tracedEvents holds the traced events of one read, ordered by offset.
type tracedEvents []*tracedEvent

// find returns the traced event of m, or nil if m is not traced. Calls must be
// in the order of offsets.
func (e *tracedEvents) find(m *frame) *tracedEvent {
	for len(*e) > 0 && (*e)[0].offset < m.offset {
		*e = (*e)[1:]
	}
	if len(*e) == 0 || (*e)[0].offset != m.offset {
		return nil
	}
	return (*e)[0]
}

// push pushes an event, which may be traced, to a subscriber.
func (t *traces) push(e *tracedEvent, m *frame, s *subscriber) pushResult {
	if e == nil {
		return s.push(m)
	}

	t.mu.Lock() // held during push; otherwise recordFlushed could run before the event is queued
	defer t.mu.Unlock()

	if e.pending == nil {
		e.id, e.pending = m.id, make(map[*subscriber]struct{})
		e.span.Set(tracing.Account(m.account), tracing.Text("trunkline.event.id", m.id.String()))
	}
	if t.waiting == nil {
		t.waiting = make(map[*subscriber][]*tracedEvent)
	}

	e.matched++
	e.pending[s] = struct{}{}
	t.waiting[s] = append(t.waiting[s], e)
	t.waitingCount.Store(int64(len(t.waiting)))

	return s.push(m)
}

// recordDispatched marks events that were pushed to all matching subscribers. A span ends
// after the write to the last of them.
func (t *traces) recordDispatched(events tracedEvents) {
	if len(events) == 0 {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	for _, e := range events {
		e.dispatched = true
		if len(e.pending) == 0 {
			e.end()
			continue
		}
		e.timeout = time.AfterFunc(traceTimeout, func() { t.expire(e) })
	}
}

// recordFlushed updates the spans of subscribers after a writer has flushed them.
func (t *traces) recordFlushed(group []*subscriber) {
	if t.waitingCount.Load() == 0 {
		return
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	for _, s := range group {
		events, found := t.waiting[s]
		if found {
			t.setWaiting(s, slices.DeleteFunc(events, func(e *tracedEvent) bool { return e.finishFor(s) }))
		}
	}
}

// setWaiting sets the traced events in a subscriber's queue.
func (t *traces) setWaiting(s *subscriber, events []*tracedEvent) {
	t.waiting[s] = events
	if len(events) == 0 {
		delete(t.waiting, s)
	}
	t.waitingCount.Store(int64(len(t.waiting)))
}

// expire ends a span that was not written to all subscribers within traceTimeout.
func (t *traces) expire(e *tracedEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if len(e.pending) == 0 {
		return
	}

	for s := range e.pending {
		t.setWaiting(s, slices.DeleteFunc(t.waiting[s], func(other *tracedEvent) bool { return other == e }))
	}

	e.pending = nil
	e.end()
}

// finishFor removes the subscriber from pending if the event was written to it or it
// has disconnected, and reports whether it did.
func (e *tracedEvent) finishFor(s *subscriber) bool {
	gone, written := s.deliveryState(e.id)
	if !gone && !written {
		return false
	}
	if written {
		e.written++
	}

	delete(e.pending, s)
	if len(e.pending) == 0 && e.dispatched {
		e.timeout.Stop()
		e.end()
	}

	return true
}

func (e *tracedEvent) end() {
	e.span.Set(tracing.Number("trunkline.subscribers.matched", e.matched),
		tracing.Number("trunkline.subscribers.written", e.written))
	e.span.End(nil)
}
