package tracing

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Carrier holds the context of a trace for other processes, or for work that outlives
// a request. The zero Carrier has none.
type Carrier struct {
	Parent string // traceparent
	State  string // tracestate; "" for none
}

// MaxState is the length of tracestate, in bytes, that W3C Trace Context
// requires to be propagated (section 3.3.1.5).
const MaxState = 512

// FromContext returns the context of the span in ctx.
func FromContext(ctx context.Context) Carrier {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return Carrier{}
	}
	var c Carrier // here, so that it is allocated only if needed
	propagation.TraceContext{}.Inject(ctx, (*textMap)(&c))
	return c
}

// FromHTTP returns the trace context of a request's headers. If it is malformed,
// Extract ignores it.
func FromHTTP(h http.Header) Carrier {
	return Carrier{h.Get(event.HeaderTrace), strings.Join(h.Values(event.HeaderTraceState), ",")}
}

// FromRecord returns the trace context of a record's headers, which may be
// malformed as in FromHTTP.
func FromRecord(r *kafka.Record) Carrier {
	return Carrier{string(r.Header(event.HeaderTrace)), string(r.Header(event.HeaderTraceState))}
}

// Extract returns ctx with the carrier's span as the parent of new spans.
func (c Carrier) Extract(ctx context.Context) context.Context {
	if len(c.State) > MaxState {
		c.State = ""
	}
	return propagation.TraceContext{}.Extract(ctx, (*textMap)(&c))
}

// AppendHeaders appends the trace context to a record's headers.
func (c Carrier) AppendHeaders(dst []kafka.Header) []kafka.Header {
	if c.Parent != "" {
		dst = append(dst, kafka.Header{Key: event.HeaderTrace, Value: []byte(c.Parent)})
	}
	if c.State != "" && len(c.State) <= MaxState {
		dst = append(dst, kafka.Header{Key: event.HeaderTraceState, Value: []byte(c.State)})
	}
	return dst
}

// TraceID returns the id of ctx's trace, "" if it has none.
func TraceID(ctx context.Context) string {
	spanContext := trace.SpanContextFromContext(ctx)
	if spanContext.HasTraceID() {
		return spanContext.TraceID().String()
	}
	return ""
}

// textMap adapts a Carrier for the propagator.
type textMap Carrier

func (m *textMap) Get(key string) string {
	if key == event.HeaderTrace {
		return m.Parent
	}
	return m.State
}

func (m *textMap) Set(key, value string) {
	if key == event.HeaderTrace {
		m.Parent = value
		return
	}
	m.State = value
}

func (m *textMap) Keys() []string { return []string{event.HeaderTrace, event.HeaderTraceState} }
