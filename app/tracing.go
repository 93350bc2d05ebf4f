package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"

	"trunkline/internal/kafka"
	"trunkline/internal/setting"
	"trunkline/internal/tracing"
	"trunkline/internal/tracing/collector"
)

const (
	maxQueuedSpans = 8192            // spans waiting for the collector; further ones are dropped
	flushTimeout   = 2 * time.Second // for waiting spans at the end
	warnInterval   = time.Minute     // between two log lines about an unavailable collector
)

// openTracing creates the tracer if the settings have a collector. An unreachable
// collector shows only when the first spans are sent.
func (p *process) openTracing(ctx context.Context) error {
	if p.settings.Tracing.Endpoint == "" {
		return nil
	}

	address, err := p.settings.Tracing.URL()
	if err != nil {
		return fmt.Errorf("tracing.endpoint: %w", err)
	}

	headers, err := p.settings.Tracing.HeaderMap()
	if err != nil {
		return fmt.Errorf("tracing.headers: %w", err)
	}

	if len(headers) == 0 {
		headers, err = tracing.Settings{Headers: setting.Secret(headerVariable())}.HeaderMap()
		if err != nil {
			return fmt.Errorf("OTEL_EXPORTER_OTLP_HEADERS: %w", err)
		}
	}

	client, err := collector.New(collector.Config{URL: address, Headers: headers, Getenv: os.Getenv})
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}

	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}

	counts := newSpanCounts(p.registry)
	queue := &queueLimiter{counts: counts}
	out := &loggingExporter{SpanExporter: exporter, queue: queue, counts: counts, log: p.log,
		warnLimiter: rate.Sometimes{First: 1, Interval: warnInterval}}
	queue.SpanProcessor = trace.NewBatchSpanProcessor(out, trace.WithMaxQueueSize(maxQueuedSpans))

	provider := trace.NewTracerProvider(
		trace.WithSpanProcessor(queue), trace.WithResource(processResource(ctx, p.version, p.log)),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(p.settings.Tracing.Sample))),
	)
	p.lifecycle.addClose("tracing", func(ctx context.Context) error {
		// Also if the other parts have used up the drain timeout, because their last spans are
		// waiting.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			p.log.Warn("sending the last spans failed", "error", err)
		}
		return exporter.Shutdown(context.WithoutCancel(ctx)) // ends a running attempt
	})

	p.tracer = tracing.New(provider)
	p.log = slog.New(tracing.LogHandler(p.log.Handler()))
	p.log.Info("tracing: spans are sent to a collector", "endpoint", address, "sample", p.settings.Tracing.Sample)

	return nil
}

// headerVariable returns the headers of the standard variables.
func headerVariable() string {
	headers := os.Getenv("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
	if headers == "" {
		headers = os.Getenv("OTEL_EXPORTER_OTLP_HEADERS")
	}
	return headers
}

// processResource returns the resource attributes of this process. OTEL_SERVICE_NAME and
// OTEL_RESOURCE_ATTRIBUTES override them.
func processResource(ctx context.Context, version string, log *slog.Logger) *resource.Resource {
	attributes := []tracing.Attribute{semconv.ServiceName("trunkline"), semconv.ServiceVersion(version)}
	host, err := os.Hostname()
	if err == nil {
		attributes = append(attributes, semconv.ServiceInstanceID(host))
	}

	found, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(attributes...),
		resource.WithFromEnv())
	if err != nil {
		log.Warn("tracing: a part of OTEL_RESOURCE_ATTRIBUTES is invalid and ignored", "error", err)
	}

	return found
}

// queueLimiter bounds the number of waiting spans and counts those that it drops. The SDK's own
// queue drops spans without counting them.
type queueLimiter struct {
	trace.SpanProcessor
	waiting atomic.Int64
	counts  *spanCounts
}

// OnEnd implements trace.SpanProcessor.
func (q *queueLimiter) OnEnd(span trace.ReadOnlySpan) {
	if !span.SpanContext().IsSampled() {
		return
	}
	// The count includes spans that are being sent, so that the SDK's queue of the same size is never full.
	if q.waiting.Add(1) > maxQueuedSpans {
		q.waiting.Add(-1)
		q.counts.dropped.Inc()
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// loggingExporter counts and logs the results of sending spans. It returns no error, because the
// SDK would print it to stderr.
type loggingExporter struct {
	trace.SpanExporter
	queue       *queueLimiter
	counts      *spanCounts
	log         *slog.Logger
	warnLimiter rate.Sometimes
}

// ExportSpans implements trace.SpanExporter.
func (s *loggingExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := s.SpanExporter.ExportSpans(ctx, spans)
	s.queue.waiting.Add(-int64(len(spans)))
	if err == nil {
		s.counts.sent.Add(float64(len(spans)))
		return nil
	}
	s.counts.failed.Add(float64(len(spans)))
	s.warnLimiter.Do(func() { s.log.Warn("sending spans failed, spans lost", "spans", len(spans), "error", err) })
	return nil
}

// startSendSpan starts the span of sending one of Trunkline's own records, as a child of the span
// in ctx, and adds the trace context to the record's headers.
func startSendSpan(ctx context.Context, tracer *tracing.Tracer, record *kafka.Record) (context.Context, tracing.Span) {
	ctx, span := tracer.StartSend(ctx, record.Topic, 1)
	if tracer != nil {
		record.Headers = tracing.FromContext(ctx).AppendHeaders(record.Headers)
	}
	return ctx, span
}
