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

// recordCost is the memory of a record in bytes besides its value: its element of the list, twice while
// the list grows.
const recordCost = 320

// buildRecords splits a body into Kafka records. A value is the record's unchanged bytes.
func (i *Ingest) buildRecords(r Request, body []byte, f *format.Format, encoding format.Encoding,
	memory *reservation) ([]kafka.Record, error) {
	accountKeys := accountKeys{caller: r.Caller, accounts: i.accounts, keys: make(map[string][]byte)}
	var records []kafka.Record

	// A record that cannot be parsed is stored under the caller's account and
	// becomes a dead letter there.
	err := f.Split(encoding, body, func(value []byte, at int, account string) error {
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

		key, ok := accountKeys.keyFor(account)
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

// recordHeaders returns the headers of every record of a body. The trace context is that of the span in
// ctx or, with tracing disabled, the caller's if it is valid.
func (i *Ingest) recordHeaders(ctx context.Context, r Request) []kafka.Header {
	headers := []kafka.Header{
		{Key: event.HeaderFormat, Value: []byte(r.Format)},
		{Key: event.HeaderSource, Value: []byte(sourceName(r.Caller))},
	}

	if i.tracer != nil {
		return tracing.FromContext(ctx).AppendHeaders(headers)
	}
	if tracing.ValidTraceparent(r.Trace) {
		headers = append(headers, kafka.Header{Key: event.HeaderTrace, Value: []byte(r.Trace)})
	}

	return headers
}
