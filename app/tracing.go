package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"

	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

const (
	spanQueue  = 8192            // spans waiting for the collector; further ones are dropped
	flushLimit = 2 * time.Second // for waiting spans at the end
	complain   = time.Minute     // between two log lines about an unavailable collector
)

// openTracing creates the tracer if the settings have a collector. An unreachable
// collector shows only when the first spans are sent.
func (a *App) openTracing(ctx context.Context, version string) error {
	if a.settings.Tracing.Endpoint == "" {
		return nil
	}
	address, err := a.settings.Tracing.URL()
	if err != nil {
		return fmt.Errorf("tracing.endpoint: %w", err)
	}
	headers, err := a.settings.Tracing.HeaderMap()
	if err != nil {
		return fmt.Errorf("tracing.headers: %w", err)
	}
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(address)}
	if len(headers) > 0 {
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	sender, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	counts := newSpanCounts(a.registry)
	queue := &spanQueueing{counts: counts}
	out := &spanSender{SpanExporter: sender, queue: queue, counts: counts, log: a.log, often: rate.Sometimes{First: 1, Interval: complain}}
	queue.SpanProcessor = trace.NewBatchSpanProcessor(out, trace.WithMaxQueueSize(spanQueue))
	provider := trace.NewTracerProvider(
		trace.WithSpanProcessor(queue), trace.WithResource(a.process(ctx, version)),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(a.settings.Tracing.Sample))),
	)
	a.life.closes("tracing", func(ctx context.Context) error {
		// Also if the other parts have used up the drain timeout: their last spans are in
		// here.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushLimit)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			a.log.Warn("sending the last spans failed", "error", err)
		}
		return sender.Shutdown(context.WithoutCancel(ctx)) // ends a running attempt
	})
	a.tracer = tracing.New(provider)
	a.log = slog.New(tracing.LogHandler(a.log.Handler()))
	a.log.Info("tracing: spans are sent to a collector", "endpoint", address, "sample", a.settings.Tracing.Sample)
	return nil
}

// process returns the resource attributes of this process. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override them.
func (a *App) process(ctx context.Context, version string) *resource.Resource {
	about := []tracing.Attribute{semconv.ServiceName("trunkline"), semconv.ServiceVersion(version)}
	if host, err := os.Hostname(); err == nil {
		about = append(about, semconv.ServiceInstanceID(host))
	}
	found, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(about...), resource.WithFromEnv())
	if err != nil {
		a.log.Warn("tracing: a part of OTEL_RESOURCE_ATTRIBUTES is left out", "error", err)
	}
	return found
}

// spanQueueing bounds the waiting spans, and counts those that it drops: the SDK's own
// queue, which is behind it, drops them without a count.
type spanQueueing struct {
	trace.SpanProcessor
	waiting atomic.Int64
	counts  *spanCounts
}

// OnEnd implements trace.SpanProcessor.
func (q *spanQueueing) OnEnd(span trace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	if q.waiting.Add(1) > spanQueue {
		q.waiting.Add(-1)
		q.counts.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// spanSender counts and logs the results of sending spans. It returns no error, which
// the SDK would print outside of our log.
type spanSender struct {
	trace.SpanExporter
	queue  *spanQueueing
	counts *spanCounts
	log    *slog.Logger
	often  rate.Sometimes
}

// ExportSpans implements trace.SpanExporter.
func (s *spanSender) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.queue.waiting.Add(-int64(len(spans)))
	if err == nil {
		s.counts.sent.Add(float64(len(spans)))
		return nil
	}
	s.counts.failed.Add(float64(len(spans)))
	s.often.Do(func() { s.log.Warn("sending spans failed, spans lost", "spans", len(spans), "error", err) })
	return nil
}

// joined begins the span of sending one of Trunkline's own records, as a part of the
// trace in ctx; the record carries the trace.
func joined(ctx context.Context, tracer *tracing.Tracer, record *kafka.Record) (context.Context, tracing.Span) {
	ctx, span := tracer.StartSend(ctx, record.Topic, 1)
	if tracer != nil {
		record.Headers = tracing.FromContext(ctx).AppendHeaders(record.Headers)
	}
	return ctx, span
}
