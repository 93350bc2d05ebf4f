package tracing_test

import (
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func record(headers ...string) *kafka.Record {
	r := &kafka.Record{Headers: []kafka.Header{{Key: event.HeaderType, Value: []byte("x")}}}
	for i := 0; i < len(headers); i += 2 {
		r.Headers = append(r.Headers, kafka.Header{Key: headers[i], Value: []byte(headers[i+1])})
	}
	return r
}

func newTracer(sample float64) (*tracing.Tracer, *tracetest.SpanRecorder) {
	seen := tracetest.NewSpanRecorder()
	return tracing.New(trace.NewTracerProvider(trace.WithSpanProcessor(seen),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(sample))))), seen
}

// Events that are not traced cost no memory: with tracing disabled, or in a trace that
// was not sampled at its start.
func TestWhatIsNotTracedAllocatesNothing(t *testing.T) {
	on, _ := newTracer(1)

	sampled, unsampled, without := record(event.HeaderTrace, good), record(event.HeaderTrace, good[:54]+"0"), record()
	ctx := t.Context()
	for name, work := range map[string]func(){
		"off": func() {
			var off *tracing.Tracer
			for _, r := range []*kafka.Record{sampled, unsampled, without} {
				_, span := off.StartRawRecord(r, event.TopicRaw, "g")
				span.End(nil)
				off.StartProcess(r, event.TopicCDR, "g").End(nil)
				off.StartDelivery(r, event.TopicEvents).End(nil)
			}

			in, span := off.StartSend(ctx, event.TopicRaw, 1)
			if span.Sampled() || tracing.FromContext(in) != (tracing.Carrier{}) {
				t.Error("there is a span")
			}
		},
		"unsampled": func() {
			_, span := on.StartRawRecord(unsampled, event.TopicRaw, "g")
			if span.Sampled() || on.StartProcess(unsampled, event.TopicCDR, "g").Sampled() ||
				on.StartDelivery(unsampled, event.TopicEvents).Sampled() ||
				on.StartDelivery(without, event.TopicEvents).Sampled() {
				t.Error("there is a span")
			}
		},
	} {
		if allocations := testing.AllocsPerRun(100, work); allocations > 0 {
			t.Errorf("%s: %v allocations", name, allocations)
		}
	}
}

func TestOnlyTheFirstBeginsATrace(t *testing.T) {
	on, seen := newTracer(1)
	for _, r := range []*kafka.Record{record(),
		record(event.HeaderTrace, "00-not a parent, but long enough, and the last one says-1")} {
		on.StartProcess(r, event.TopicCDR, "g").End(nil)
		on.StartDelivery(r, event.TopicEvents).End(nil)
	}

	if n := len(seen.Ended()); n != 0 {
		t.Fatalf("%d spans without a trace", n)
	}

	carrier, span := on.StartRawRecord(record(), event.TopicRaw, "g")
	span.End(nil)
	if got := seen.Ended(); len(got) != 1 || got[0].Parent().IsValid() || !tracing.ValidTraceparent(carrier.Parent) {
		t.Errorf("%v, carried on as %+v", got, carrier)
	}

	rarely, seen := newTracer(0)
	if carrier, span := rarely.StartRawRecord(record(), event.TopicRaw, "g"); span.Sampled() ||
		carrier != (tracing.Carrier{}) || len(seen.Started()) > 0 {
		t.Error("a trace begins that is not sampled")
	}
}
