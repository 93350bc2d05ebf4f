package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"trunkline/internal/fault"
)

// Tracer starts spans. A nil Tracer starts none.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer that sends its spans to the provider.
func New(provider trace.TracerProvider) *Tracer {
	return &Tracer{provider.Tracer("trunkline", trace.WithSchemaURL(semconv.SchemaURL))}
}

// Attribute is a key and a value of a span.
type Attribute = attribute.KeyValue

// Text returns a string attribute.
func Text(key, value string) Attribute { return attribute.String(key, value) }

// Number returns an integer attribute.
func Number(key string, value int) Attribute { return attribute.Int(key, value) }

// Flag returns a boolean attribute.
func Flag(key string, value bool) Attribute { return attribute.Bool(key, value) }

// Account returns the attribute with the account of a span.
func Account(id string) Attribute { return attribute.String("trunkline.account.id", id) }

// Span is a span of a trace. All methods of the zero Span do nothing.
type Span struct{ span trace.Span }

// Start starts a span below that of ctx.
func (t *Tracer) Start(ctx context.Context, name string, attributes ...Attribute) (context.Context, Span) {
	return t.startSpan(ctx, name, trace.SpanKindInternal, attributes)
}

// StartClient starts the span of a request to another service.
func (t *Tracer) StartClient(ctx context.Context, name string, attributes ...Attribute) (context.Context, Span) {
	return t.startSpan(ctx, name, trace.SpanKindClient, attributes)
}

func (t *Tracer) startSpan(ctx context.Context, name string, kind trace.SpanKind,
	attributes []Attribute) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return ctx, Span{span}
}

// Sampled reports whether the span will be exported.
func (s Span) Sampled() bool { return s.span != nil && s.span.IsRecording() }

// Set adds attributes to the span.
func (s Span) Set(attributes ...Attribute) {
	if s.span != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Fail marks the span as failed, with a reason of a bounded set.
func (s Span) Fail(kind string) {
	if s.span != nil {
		s.span.SetAttributes(semconv.ErrorTypeKey.String(kind))
		s.span.SetStatus(codes.Error, "")
	}
}

// End ends the span, as failed if err is not nil. It records only the kind of err.
func (s Span) End(err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.Fail(string(fault.KindOf(err)))
	}
	s.span.End()
}
