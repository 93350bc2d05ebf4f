package fanout

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

const sampledParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func tracedRecords(parents ...string) []kafka.Record {
	records := benchRecords(len(parents), func(int) string { return "root" })
	for i, parent := range parents {
		if parent != "" {
			records[i].Headers = append(records[i].Headers, kafka.Header{Key: event.HeaderTrace, Value: []byte(parent)})
		}
	}
	return records
}

func newTraces() (*traces, *tracetest.SpanRecorder) {
	seen := tracetest.NewSpanRecorder()
	return &traces{tracer: tracing.New(trace.NewTracerProvider(trace.WithSpanProcessor(seen)))}, seen
}

// pushAll gives a batch's frames to subscribers, as a round does.
func pushAll(t *traces, found tracedEvents, b *batch, subs ...*subscriber) {
	rest := found
	for i := range b.frames {
		m := &b.frames[i]
		e := rest.find(m)
		for _, s := range subs {
			t.push(e, m, s)
		}
	}
	t.recordDispatched(found)
}

func spanCounts(span trace.ReadOnlySpan) string {
	var matched, written int64
	for _, a := range span.Attributes() {
		switch a.Key {
		case "trunkline.subscribers.matched":
			matched = a.Value.AsInt64()
		case "trunkline.subscribers.written":
			written = a.Value.AsInt64()
		}
	}

	return fmt.Sprintf("%d of %d", written, matched)
}

func TestOneSpanForAllSubscribersUntilTheLastIsWritten(t *testing.T) {
	traces, seen := newTraces()
	records := tracedRecords("", sampledParent, sampledParent[:54]+"0")
	found := traces.startSpans(records)
	if len(found) != 1 || found[0].offset != 1 {
		t.Fatalf("%d traced events", len(found))
	}

	b, _ := newBatch(records, &interner{}, false)
	quick := &subscriber{queueLimit: 1 << 20, transport: &sinkTransport{}}
	slow := &subscriber{queueLimit: 1 << 20, transport: &sinkTransport{}}
	gone := &subscriber{queueLimit: 1 << 20, transport: &sinkTransport{}, queueOwner: closed}
	pushAll(traces, found, b, quick, slow, gone)
	quick.transport.sendQueued(quick, nil)
	traces.recordFlushed([]*subscriber{quick, slow, gone}) // slow's socket took nothing yet

	if len(seen.Ended()) != 0 {
		t.Fatal("the span ends before the last is written")
	}

	slow.transport.sendQueued(slow, nil)
	traces.recordFlushed([]*subscriber{slow})
	ended := seen.Ended()
	if len(ended) != 1 || spanCounts(ended[0]) != "2 of 3" || traces.waitingCount.Load() != 0 ||
		len(traces.waiting) != 0 {
		t.Errorf("%d spans, %d wait", len(ended), len(traces.waiting))
	}
}

func TestSpanDoesNotWaitForAFullSocketForEver(t *testing.T) {
	traces, seen := newTraces()
	records := tracedRecords(sampledParent, sampledParent)
	found := traces.startSpans(records)
	b, _ := newBatch(records, &interner{}, false)
	stuck := &subscriber{queueLimit: 1 << 20, transport: &sinkTransport{}}
	pushAll(traces, found, b, stuck)

	for _, e := range found {
		e.timeout.Stop()
		traces.expire(e)
		traces.expire(e)
	}

	stuck.transport.sendQueued(stuck, nil)
	traces.recordFlushed([]*subscriber{stuck})
	ended := seen.Ended()
	if len(ended) != 2 || spanCounts(ended[0]) != "0 of 1" || len(traces.waiting) != 0 ||
		traces.waitingCount.Load() != 0 {
		t.Errorf("%d spans, %d wait", len(ended), len(traces.waiting))
	}
}

func TestEventForNobodyIsASpanToo(t *testing.T) {
	traces, seen := newTraces()
	found := traces.startSpans(tracedRecords(sampledParent))
	traces.recordDispatched(found)
	if ended := seen.Ended(); len(ended) != 1 || spanCounts(ended[0]) != "0 of 0" {
		t.Errorf("%d spans", len(ended))
	}
}

// With tracing off, and for events that are not sampled, following costs no
// memory and no lock.
func TestUntracedEventsAllocateNothing(t *testing.T) {
	on, _ := newTraces()
	records := tracedRecords("", sampledParent[:54]+"0")
	b, _ := newBatch(records, &interner{}, false)
	s := &subscriber{queueLimit: 1 << 20, transport: &sinkTransport{}}
	group := []*subscriber{s}

	for name, traces := range map[string]*traces{"off": {}, "on": on} {
		allocations := testing.AllocsPerRun(100, func() {
			found := traces.startSpans(records)
			pushAll(traces, found, b, s)
			s.transport.sendQueued(s, nil)
			traces.recordFlushed(group)
		})
		if allocations > 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}
