package tracing

import (
	"context"
	"strconv"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"trunkline/event"
	"trunkline/internal/kafka"
)

// Kafka spans follow OpenTelemetry's conventions for messaging: the sender's span, one
// for any number of records, is the parent of the span that processes a record.

// StartSend starts the span of sending count records to a topic. The records carry
// FromContext of the returned context.
func (t *Tracer) StartSend(ctx context.Context, topic string, count int) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return t.startSpan(ctx, "send "+topic, trace.SpanKindProducer, []Attribute{
		semconv.MessagingSystemKafka, semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("send"),
		semconv.MessagingDestinationName(topic), semconv.MessagingBatchMessageCount(count),
	})
}

// StartRawRecord starts the span of processing a raw record: in the trace of its headers if
// that is sampled, or in a new trace if the record has none. The Carrier is for the
// records produced from it. A zero Span has a zero Carrier.
func (t *Tracer) StartRawRecord(r *kafka.Record, topic, group string) (Carrier, Span) {
	if t == nil {
		return Carrier{}, Span{}
	}
	parent := r.Header(event.HeaderTrace)
	// The sender has decided that this trace is not recorded.
	if parent != nil && !Sampled(parent) {
		return Carrier{}, Span{}
	}
	return t.startConsumer(FromRecord(r).Extract(context.Background()), r, "process", topic, group)
}

// StartProcess starts the span of processing a record of a sampled trace. For any other
// record it returns the zero Span, without an allocation.
func (t *Tracer) StartProcess(r *kafka.Record, topic, group string) Span {
	return t.startIfSampled(r, "process", topic, group)
}

// StartDelivery is like StartProcess for delivery to subscribers, which are not a consumer group:
// each of them receives every event.
func (t *Tracer) StartDelivery(r *kafka.Record, topic string) Span {
	return t.startIfSampled(r, "deliver", topic, "")
}

func (t *Tracer) startIfSampled(r *kafka.Record, operation, topic, group string) Span {
	if t == nil || !Sampled(r.Header(event.HeaderTrace)) {
		return Span{}
	}
	ctx := FromRecord(r).Extract(context.Background())
	if TraceID(ctx) == "" { // malformed
		return Span{}
	}
	_, span := t.startConsumer(ctx, r, operation, topic, group)
	return span
}

func (t *Tracer) startConsumer(ctx context.Context, r *kafka.Record, operation, topic, group string) (Carrier, Span) {
	attributes := []Attribute{
		semconv.MessagingSystemKafka, semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName(operation),
		semconv.MessagingDestinationName(topic), semconv.MessagingDestinationPartitionID(strconv.Itoa(r.Partition)),
		semconv.MessagingKafkaOffset(int(r.Offset)),
	}

	if group != "" {
		attributes = append(attributes, semconv.MessagingConsumerGroupName(group))
	}

	ctx, span := t.startSpan(ctx, operation+" "+topic, trace.SpanKindConsumer, attributes)
	if !span.Sampled() {
		return Carrier{}, Span{}
	}

	return FromContext(ctx), span
}
