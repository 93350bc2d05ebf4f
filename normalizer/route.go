package normalizer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"trunkline/event"
	"trunkline/format"
	"trunkline/internal/kafka"
)

// route describes how records of a raw topic reach their normalized topic.
type route struct {
	raw, out string
	ids      bool // records of out carry event ids
	// normalize adds the message or row made of raw to the batch. A
	// *format.Rejection makes raw a dead letter; another error is retried.
	normalize func(ctx context.Context, b *batch, raw *kafka.Record, id event.ID) error
}

// formatUnknown is the original_format of a message whose record has nothing
// but an account that could be recognised.
const formatUnknown = "unknown"

var routes = map[string]*route{
	event.TopicRaw:    {raw: event.TopicRaw, out: event.TopicEvents, ids: true, normalize: normalizeEvent},
	event.TopicCDRRaw: {raw: event.TopicCDRRaw, out: event.TopicCDR, normalize: normalizeCDR},
}

// normalizeEvent makes a raw record a channel message.
func normalizeEvent(ctx context.Context, b *batch, raw *kafka.Record, id event.ID) error {
	f, e, err := readEvent(b, raw)
	if err != nil {
		return err
	}
	account, err := b.resolveAccount(ctx, e.Account, raw.Key)
	if err != nil {
		return err
	}
	if e.Timestamp == 0 {
		e.Timestamp = raw.Time.Unix()
	}
	m := event.Message{
		ID: id, Type: e.Type, AccountID: account, Timestamp: e.Timestamp, Data: raw.Value,
		Metadata: event.Metadata{
			Source: source(raw), OriginalFormat: f, ProcessedAt: b.now.Unix(), QueueID: e.QueueID,
		},
	}
	start := len(b.bytes)
	b.bytes = m.Append(b.bytes)
	out := kafka.Record{Value: b.appended(start), Time: time.UnixMilli(id.Milli())}
	headers := len(b.headers)
	b.header(event.HeaderType, string(m.Type))
	b.header(event.HeaderAccount, account)
	out.Key = b.headers[len(b.headers)-1].Value
	b.header(event.HeaderOriginalFormat, f)
	b.position(raw)
	b.trace(raw, account)
	return b.add(out, headers)
}

// readEvent returns what the record says, and the name of its format.
func readEvent(b *batch, raw *kafka.Record) (name string, e format.Event, err error) {
	f, account, err := b.formatOf(raw)
	if err != nil {
		return "", format.Event{}, err
	}
	if f == nil { // not recognised
		if account == "" {
			return "", format.Event{}, format.Rejectf(Unrecognised, "no format header, and its keys tell no format and no account")
		}
		return formatUnknown, format.Event{Type: event.Custom, Account: account}, nil
	}
	e, err = f.ReadEvent(raw.Value, &b.fields)
	return f.Name, e, err
}

// normalizeCDR makes a raw call record a row.
func normalizeCDR(ctx context.Context, b *batch, raw *kafka.Record, _ event.ID) error {
	f, _, err := b.formatOf(raw)
	if err != nil {
		return err
	}
	if f == nil {
		return format.Rejectf(Unrecognised, "no format header, and its keys tell no format")
	}
	row, err := f.ReadCDR(raw.Value, &b.fields, format.Calendar{Recorded: raw.Time.Unix()})
	if err != nil {
		return err
	}
	if row.AccountID, err = b.resolveAccount(ctx, row.AccountID, raw.Key); err != nil {
		return err
	}
	if err := row.Check(); err != nil {
		return format.Rejectf(format.OutOfRange, "%v", err)
	}
	value, err := json.Marshal(&row)
	if err != nil {
		return fmt.Errorf("writing a row: %w", err)
	}
	out := kafka.Record{Value: value, Time: raw.Time} // its own bytes
	headers := len(b.headers)
	b.header(event.HeaderAccount, row.AccountID)
	out.Key = b.headers[headers].Value
	b.position(raw)
	if row.OriginationCallID != "" {
		b.header(event.HeaderOrigination, row.OriginationCallID)
	}
	b.trace(raw, row.AccountID)
	return b.add(out, headers)
}

// source returns the feed or key that sent the record.
func source(raw *kafka.Record) string {
	if s := raw.Header(event.HeaderSource); len(s) > 0 {
		return string(s)
	}
	return "kafka"
}
