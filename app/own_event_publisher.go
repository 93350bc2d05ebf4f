package app

import (
	"context"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// rawRecord returns one of Trunkline's own records for the normalizer. An account's
// records keep their order.
func rawRecord(topic, format, source, accountID string, value []byte) kafka.Record {
	return kafka.Record{
		Topic: topic, Partition: kafka.AnyPartition, Key: []byte(accountID), Value: value,
		Headers: []kafka.Header{
			{Key: event.HeaderFormat, Value: []byte(format)},
			{Key: event.HeaderSource, Value: []byte(source)},
		},
	}
}

// ownEventPublisher produces Trunkline's own events to the raw topic, from which they reach the
// channel.
type ownEventPublisher struct {
	producer *kafka.Producer
	source   string // the records' header, as "recordings"
	tracer   *tracing.Tracer
}

// Publish implements recording.Publisher. An account's events keep their order.
func (e ownEventPublisher) Publish(ctx context.Context, accountID string, data []byte) error {
	record := rawRecord(event.TopicRaw, event.FormatOwn, e.source, accountID, data)
	ctx, span := startSendSpan(ctx, e.tracer, &record)
	err := e.producer.Produce(ctx, record)
	span.End(err)
	return err
}
