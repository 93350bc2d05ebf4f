package cdrindex

import (
	"context"
	"log/slog"
	"time"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// batchReader reads records and collects them in batches.
type batchReader struct {
	reader     Reader
	generation int64 // of the topic: how often it was recreated
	maxEntries int   // entries of a batch, about
	log        *slog.Logger
	tracer     *tracing.Tracer // nil: no spans

	entries    []entry
	invalid    int
	oldest     time.Time // of the batch's records
	newest     time.Time
	firstEpoch int32 // leader epochs of the batch's records
	lastEpoch  int32
	spans      []tracing.Span // of the sampled records, from their reading on
}

// gatherTime is the time for which a batch waits for further records that the reader has, or
// should have, in memory.
const gatherTime = 100 * time.Millisecond

// readBatch waits for a record and adds those that are already available.
func (g *batchReader) readBatch(ctx context.Context) error {
	clear(g.entries)
	clear(g.spans)
	g.spans = g.spans[:0] // spans of records that were not stored are never ended or sent
	g.entries, g.invalid, g.oldest = g.entries[:0], 0, time.Time{}
	size, err := g.readRecords(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, gatherTime)
	defer cancel()
	for g.reader.Lag() > 0 && len(g.entries) < g.maxEntries && size < maxBatchBytes {
		more, err := g.readRecords(ctx)
		if err != nil {
			return nil // if the error lasts, the next batch returns it
		}
		size += more
	}
	return nil
}

// beginSpan begins the span of a record of a sampled trace.
func (g *batchReader) beginSpan(r *kafka.Record, e *entry, err error) {
	if g.tracer == nil {
		return
	}
	span := g.tracer.StartProcess(r, event.TopicCDR, group)
	if !span.Sampled() {
		return
	}
	if err != nil {
		span.Fail(resultInvalid)
	} else {
		span.Set(tracing.Account(e.row.AccountID))
	}
	g.spans = append(g.spans, span)
}

// endSpans ends the spans after the batch was stored.
func (g *batchReader) endSpans() {
	for _, span := range g.spans {
		span.End(nil)
	}
}

func (g *batchReader) readRecords(ctx context.Context) (size int, err error) {
	records, err := g.reader.Read(ctx)
	if err != nil {
		return 0, err
	}
	for i := range records {
		r := &records[i]
		size += len(r.Value)
		if g.oldest.IsZero() {
			g.oldest, g.firstEpoch = r.Time, r.LeaderEpoch
		}
		g.newest, g.lastEpoch = r.Time, r.LeaderEpoch
		e, err := decodeEntry(r, g.generation)
		g.beginSpan(r, &e, err)
		if err != nil {
			g.invalid++
			g.log.Error("invalid record in the cdr topic",
				"partition", r.Partition, "offset", r.Offset, "reason", err)
			continue
		}
		g.entries = append(g.entries, e)
	}
	return size, nil
}
