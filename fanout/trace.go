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

// traces follow the events of sampled traces from Kafka to the sockets: one span
// for each on each node, however many subscribers get it. For any other event
// they cost a look at one header, and with tracing off not even that.
type traces struct {
	tracer *tracing.Tracer // nil: off
	open   atomic.Int64    // len(waits); most often nothing more is asked

	mu      sync.Mutex                     // after index.mu, before subscriber.mu
	waiting map[*subscriber][]*tracedEvent // what is on its queue
}

// traced is an event of a sampled trace. What follows offset is guarded by
// traces.mu.
type tracedEvent struct {
	span   tracing.Span
	offset int64

	id         event.ID
	pending    map[*subscriber]struct{} // have it on their queues
	matched    int
	written    int
	dispatched bool // nobody is added any more
	timeout    *time.Timer
}

// traceLimit is how long a span waits for sockets that are full.
const traceLimit = 10 * time.Second

// begin begins spans for records that have just been read. Most often there are
// none.
func (t *traces) begin(records []kafka.Record) (found tracedEvents) {
	if t.tracer == nil {
		return nil
	}
	for i := range records {
		if span := t.tracer.Deliver(&records[i], event.TopicEvents); span.Sampled() {
			found = append(found, &tracedEvent{span: span, offset: records[i].Offset})
		}
	}
	return found
}

// tracedEvents are those of one read, in the order of their offsets.
type tracedEvents []*tracedEvent

// of is the traced event that m is, nil when it is none. Frames are asked for in
// their order.
func (e *tracedEvents) find(m *frame) *tracedEvent {
	for len(*e) > 0 && (*e)[0].offset < m.offset {
		*e = (*e)[1:]
	}
	if len(*e) == 0 || (*e)[0].offset != m.offset {
		return nil
	}
	return (*e)[0]
}

// push is the subscriber's push of an event that may be traced.
func (t *traces) push(e *tracedEvent, m *frame, s *subscriber) pushResult {
	if e == nil {
		return s.push(m)
	}
	t.mu.Lock() // until it is on the queue: else flushed would miss it there
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
	t.open.Store(int64(len(t.waiting)))
	return s.push(m)
}

// dispatched says that every subscriber of the events has been given them. A
// span ends when the last of them has been written.
func (t *traces) dispatched(events tracedEvents) {
	if len(events) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		if e.dispatched = true; len(e.pending) == 0 {
			e.end()
			continue
		}
		e.timeout = time.AfterFunc(traceLimit, func() { t.expire(e) })
	}
}

// flushed says that a writer has done what it can for a group.
func (t *traces) flushed(group []*subscriber) {
	if t.open.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range group {
		if events, waits := t.waiting[s]; waits {
			t.setWaiting(s, slices.DeleteFunc(events, func(e *tracedEvent) bool { return e.settle(s) }))
		}
	}
}

// keep says what still waits on a subscriber's queue.
func (t *traces) setWaiting(s *subscriber, events []*tracedEvent) {
	if t.waiting[s] = events; len(events) == 0 {
		delete(t.waiting, s)
	}
	t.open.Store(int64(len(t.waiting)))
}

// giveUp ends a span that some subscribers keep waiting.
func (t *traces) expire(e *tracedEvent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(e.pending) == 0 {
		return
	}
	for s := range e.pending {
		t.setWaiting(s, slices.DeleteFunc(t.waiting[s], func(one *tracedEvent) bool { return one == e }))
	}
	e.pending = nil
	e.end()
}

// settled says whether nothing more is to come of the event at a subscriber: it
// has been written, or the subscriber is gone.
func (e *tracedEvent) settle(s *subscriber) bool {
	gone, written := s.deliveryState(e.id)
	if !gone && !written {
		return false
	}
	if written {
		e.written++
	}
	if delete(e.pending, s); len(e.pending) == 0 && e.dispatched {
		e.timeout.Stop()
		e.end()
	}
	return true
}

func (e *tracedEvent) end() {
	e.span.Set(tracing.Number("trunkline.subscribers.matched", e.matched), tracing.Number("trunkline.subscribers.written", e.written))
	e.span.End(nil)
}

// has says whether the subscriber is gone, or else whether the event has left
// its queue. Server-sent events are written by their request, which has taken
// over what the writer left.
func (s *subscriber) deliveryState(id event.ID) (gone, written bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == closed || s.closing != nil {
		return true, false
	}
	return false, !s.transport.answersPings() || !s.queue.Contains(int64(id))
}
