package ingest

import (
	"context"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/split"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// recordCost is what one record needs beside its bytes: its place in the list,
// twice over while the list grows.
const recordCost = 320

// records splits a body and makes of each record what Kafka gets. Values are
// the bytes as they were sent.
func (i *Ingest) records(r Request, body []byte, f *format.Format, encoding format.Encoding, memory *lease) ([]kafka.Record, error) {
	owners := owners{caller: r.Caller, accounts: i.accounts, keys: make(map[string][]byte)}
	var records []kafka.Record
	err := encoding.Split(body, func(value []byte, at int) error {
		if len(value) > split.MaxRecord {
			return split.RecordTooLarge(at)
		}
		cost := recordCost
		if encoding.Copies {
			cost += cap(value)
		}
		if err := memory.grow(cost); err != nil {
			return err
		}
		// A record that cannot be read names no account; it is stored under the
		// caller's and becomes a dead letter there.
		account, err := i.namedAccount(f, value)
		if err != nil {
			account = ""
		}
		key, ok := owners.key(account)
		if !ok {
			return split.Refuse(at, fault.KindForbidden, "a record names an account that this caller may not write to")
		}
		records = append(records, kafka.Record{
			Topic: f.Topic, Partition: kafka.AnyPartition, Key: key, Value: value,
		})
		return nil
	})
	if err != nil {
		return nil, split.WithLine(err, body)
	}
	return records, nil
}

// headersOf are the headers that every record of a body carries: with tracing
// on, the context of the span in ctx, else the caller's own where it is valid.
func (i *Ingest) headersOf(ctx context.Context, r Request) []kafka.Header {
	headers := []kafka.Header{
		{Key: event.HeaderFormat, Value: []byte(r.Format)},
		{Key: event.HeaderSource, Value: []byte(sourceOf(r.Caller))},
	}
	if i.tracer != nil {
		return tracing.FromContext(ctx).Headers(headers)
	}
	if tracing.Valid(r.Trace) {
		headers = append(headers, kafka.Header{Key: event.HeaderTrace, Value: []byte(r.Trace)})
	}
	return headers
}
