package cdrindex

import (
	"context"
	"time"

	"trunkline/event"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
)

// limits bound a batch: it has the records that are in memory, or should be soon.
var limits = consume.Limits{Records: 5000, Bytes: 16 << 20, Time: 100 * time.Millisecond}

// recordBatch is a batch of records of cdr.
type recordBatch struct {
	*Index
	tracer *tracing.Tracer // nil: no spans

	entries []entry
	invalid int
	spans   []tracing.Span // of the sampled records, from their reading on
}

// Reset implements consume.Batch. Spans of records that were not stored are never ended or sent.
func (b *recordBatch) Reset() {
	clear(b.entries)
	clear(b.spans)
	b.entries, b.spans, b.invalid = b.entries[:0], b.spans[:0], 0
}

// Add implements consume.Batch.
func (b *recordBatch) Add(r *kafka.Record, generation int64) {
	e, err := decodeEntry(r, generation)
	b.beginSpan(r, &e, err)
	if err != nil {
		b.invalid++
		b.log.Error("invalid record in the cdr topic", "partition", r.Partition, "offset", r.Offset, "reason", err)
		return
	}
	b.entries = append(b.entries, e)
}

// beginSpan begins the span of a record of a sampled trace.
func (b *recordBatch) beginSpan(r *kafka.Record, e *entry, err error) {
	if b.tracer == nil {
		return
	}

	span := b.tracer.StartProcess(r, event.TopicCDR, group)
	if !span.Sampled() {
		return
	}

	if err != nil {
		span.Fail(resultInvalid)
	} else {
		span.Set(tracing.Account(e.row.AccountID))
	}

	b.spans = append(b.spans, span)
}

// Store implements consume.Batch.
func (b *recordBatch) Store(ctx context.Context, move func(context.Context, *sqldb.BulkTx) error) error {
	_, err := b.apply(ctx, batch{entries: b.entries, fence: move})
	if err != nil {
		return err
	}
	b.metrics.records.WithLabelValues(resultInvalid).Add(float64(b.invalid))
	for _, span := range b.spans {
		span.End(nil)
	}
	return nil
}
