package feed

import (
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// Records have the context of the span that stores them; a record of another topic
// that of another span. Without tracing they have none.
func TestRecordsHaveTheirTrace(t *testing.T) {
	k, spans := newFakeKafka(), tracetest.NewSpanRecorder()
	out := &kafkaOutput{producer: k, log: slog.New(slog.DiscardHandler), onDropped: func(int) {},
		tracer: tracing.New(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))}
	raw := kafka.Record{Topic: event.TopicRaw, Value: []byte("{}"),
		Headers: []kafka.Header{{Key: event.HeaderFormat, Value: []byte("generic")}}}
	cdr := raw
	cdr.Topic = event.TopicCDRRaw

	if !out.send(t.Context(), []kafka.Record{raw, cdr, raw}) {
		t.Fatal("not sent")
	}

	contexts := map[string]string{} // span ids by the span's name
	for _, span := range spans.Ended() {
		contexts[span.Name()] = span.SpanContext().SpanID().String()
	}

	records := k.topic(event.TopicRaw)
	if len(contexts) != 2 || len(records) != 3 {
		t.Fatalf("spans %v of %d records, want one for each of 2 topics", contexts, len(records))
	}

	for _, r := range records {
		parent := r.Header(event.HeaderTrace)
		if !tracing.ValidTraceparent(string(parent)) || string(parent[36:52]) != contexts["send "+r.Topic] ||
			len(r.Headers) != 2 {
			t.Errorf("a record of %s has %q, want %s", r.Topic, r.Headers, contexts["send "+r.Topic])
		}
	}

	out.tracer = nil
	if !out.send(t.Context(), []kafka.Record{raw}) {
		t.Fatal("not sent")
	}
	if last := k.topic(event.TopicRaw)[3]; last.Header(event.HeaderTrace) != nil {
		t.Errorf("headers %q with tracing off", last.Headers)
	}
}
