package feed

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/tracing"
)

// Producer stores records in Kafka. A nil error means that all are durable; kafka.ErrTopicLimit means
// that all are durable except those too large for their topic.
type Producer interface {
	// Produce writes the records and returns nil only if all of them are durable. It copies them at
	// once. If a record is larger than topics.MaxRecordBytes, it returns fault.KindTooLarge and
	// sends none. kafka.ErrTopicLimit means that the topic rejects at least one record, and that all
	// others are durable. Any other error means that at least one record is not known to be
	// durable; if it wraps kafka.ErrOutcomeUnknown, as after the end of ctx, some may have been written
	// all the same.
	Produce(ctx context.Context, records ...kafka.Record) error
}

// kafkaOutput stores the records of a feed in Kafka.
type kafkaOutput struct {
	producer  Producer
	tracer    *tracing.Tracer   // nil disables tracing
	onDropped func(records int) // called with the number of records that no retry can store
	log       *slog.Logger
}

// send stores records and retries without limit. It returns false if ctx ended first.
func (o *kafkaOutput) send(ctx context.Context, records []kafka.Record) bool {
	spans := o.startSpans(ctx, records)
	sent := o.produceWithRetry(ctx, records)
	for _, span := range spans {
		if sent {
			span.End(nil)
		} else {
			span.End(ctx.Err())
		}
	}

	return sent
}

// startSpans starts a span for each topic and adds its context to the records' headers.
func (o *kafkaOutput) startSpans(ctx context.Context, records []kafka.Record) []tracing.Span {
	if o.tracer == nil {
		return nil
	}

	counts := map[string]int{}
	for i := range records {
		counts[records[i].Topic]++
	}

	var spans []tracing.Span
	carriers := map[string]tracing.Carrier{} // by topic: the context of its span
	for topic, count := range counts {
		ctx, span := o.tracer.StartSend(ctx, topic, count)
		spans = append(spans, span)
		carriers[topic] = tracing.FromContext(ctx)
	}

	for i := range records {
		r := &records[i]
		r.Headers = carriers[r.Topic].AppendHeaders(r.Headers)
	}

	return spans
}

// produceWithRetry is send without spans.
func (o *kafkaOutput) produceWithRetry(ctx context.Context, records []kafka.Record) bool {
	wait := retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}
	for {
		err := o.producer.Produce(ctx, records...)
		switch {
		case err == nil:
			return true
		// Nothing else can become of it: the records behind it wait.
		case errors.Is(err, kafka.ErrTopicLimit) || fault.KindOf(err) == fault.KindTooLarge && len(records) == 1:
			o.onDropped(1)
			o.log.Error("records dropped: too large for Kafka", "error", err)
			return true
		case fault.KindOf(err) == fault.KindTooLarge: // one record is too large: none was sent
			for i := range records {
				if !o.produceWithRetry(ctx, records[i:i+1]) {
					return false
				}
			}
			return true
		case ctx.Err() != nil:
			return false
		}

		o.log.Warn("sending a feed's events to Kafka failed, trying again", "error", err)
		if !wait.Wait(ctx) {
			return false
		}
	}
}
