package normalizer

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/internal/kafka"
)

// conversion converts the records of a raw topic to those of its normalized topic.
type conversion struct {
	rawTopic, normalizedTopic string
	hasEventIDs               bool // records of normalizedTopic carry event ids
	// normalize adds the message or row of raw to the batch. If it returns a
	// *format.Rejection, raw becomes a dead letter; other errors are retried.
	normalize func(ctx context.Context, b *batch, raw *kafka.Record, id event.ID) error
}

// formatUnknown is the original_format of a message whose record was recognised only
// by its account.
const formatUnknown = "unknown"

var conversions = map[string]*conversion{
	event.TopicRaw: {rawTopic: event.TopicRaw, normalizedTopic: event.TopicEvents, hasEventIDs: true,
		normalize: normalizeEvent},
	event.TopicCDRRaw: {rawTopic: event.TopicCDRRaw, normalizedTopic: event.TopicCDR, normalize: normalizeCDR},
}

// normalizeEvent converts a raw record to a channel message.
func normalizeEvent(ctx context.Context, b *batch, raw *kafka.Record, id event.ID) error {
	f, data, e, err := readEvent(b, raw)
	if err != nil {
		return err
	}

	account, err := b.resolveAccount(ctx, e.Account, raw)
	if err != nil {
		return err
	}

	if e.Timestamp == 0 {
		e.Timestamp = raw.Time.Unix()
	}

	sourceName, queue := sourceOf(raw), e.Facts.QueueID // as named by the record
	nameInRecord := e.Facts.Name
	var past []state.Step
	if b.partitionState != nil {
		stateEvent := state.Event{
			ID: id, Account: account, Timestamp: e.Timestamp, Source: sourceName, Identity: b.identity, Facts: e.Facts,
			IsLegOf: e.IsLegOf,
		}
		b.partitionState.CompleteAndFold(&stateEvent)
		e.Facts, past = stateEvent.Facts, stateEvent.Past.PastSteps()
	}

	// The state has made the name more specific, and the type follows the name.
	if e.Facts.Name != nameInRecord {
		e.Type = format.TypeOf(e.Facts.Name)
	}
	if e.IsLegOf != nil && e.IsLegOf(e.Facts.AgentID) {
		e.Type = format.TypeOfAgentLeg(&e.Facts)
	}

	formatName := formatUnknown
	if f != nil {
		formatName = f.Name
	}

	m := event.Message{
		ID: id, Type: e.Type, AccountID: account, Timestamp: e.Timestamp, Data: data,
		Metadata: event.Metadata{
			Source: sourceName, OriginalFormat: formatName, ProcessedAt: b.now.Unix(), QueueID: queue, Facts: e.Facts,
		},
	}
	if m.Type == event.QueueCall {
		b.callData = appendCallData(b.callData[:0], &m, &e.Call, past, f.ExtensionOf)
		m.Data = b.callData
	}

	start := len(b.buffer)
	b.buffer = m.Append(b.buffer)
	out := kafka.Record{Value: b.appendedSince(start), Time: time.UnixMilli(id.Milli())}
	firstHeader := len(b.headers)
	b.addHeader(event.HeaderType, string(m.Type))
	b.addHeader(event.HeaderAccount, account)
	out.Key = b.headers[len(b.headers)-1].Value
	b.addHeader(event.HeaderOriginalFormat, formatName)
	b.addFactHeaders(&e.Facts)
	b.addAgentQueues(account, &e.Facts)

	if b.cloudEvents {
		b.addCloudEventHeaders(&m)
	}

	if b.identity.Run != "" {
		start := len(b.buffer)
		b.buffer = b.identity.Append(b.buffer)
		b.headers = append(b.headers, kafka.Header{Key: event.HeaderIdentity, Value: b.appendedSince(start)})
	}

	b.addPositionHeaders(raw)
	b.addTraceHeaders(raw, account)
	return b.addEvent(out, firstHeader)
}

// readEvent returns the event in the record, the record as the message's data, and its format, nil if it
// is not known.
func readEvent(b *batch, raw *kafka.Record) (f *format.Format, data []byte, e format.Event, err error) {
	f, account, err := b.formatOf(raw)
	if err != nil {
		return nil, nil, format.Event{}, err
	}

	if f == nil { // not recognised
		if account == "" {
			return nil, nil, format.Event{},
				format.Rejectf(Unrecognised, "no format header, and its keys tell no format and no account")
		}
		return nil, raw.Value,
			format.Event{Type: event.Custom, Account: account, Facts: event.Facts{Name: event.NameOther}}, nil
	}

	data, replaced := f.ValidUTF8(raw.Value)
	e, err = f.ReadEvent(data, &b.scratch.fields)
	if e.Facts.Name == "" {
		e.Facts.Name = event.NameOther
	}
	if err == nil && replaced {
		b.counts.addSourceRepairs(&event.CDRRepairs{Text: 1})
	}

	return f, data, e, err
}

// addCloudEventHeaders makes the record a CloudEvent (Kafka protocol binding 1.0, binary
// mode) with the message as data.
func (b *batch) addCloudEventHeaders(m *event.Message) {
	e := event.CloudEvent{ID: m.ID, AccountID: m.AccountID, Name: m.Metadata.Facts.Name, Timestamp: m.Timestamp}
	for _, a := range e.Attributes() {
		b.addHeader(event.HeaderCloudEvent+a.Name, a.Value)
	}
	b.addHeader(event.HeaderContentType, event.ContentTypeJSON)
}

// addFactHeaders adds headers with the facts, so that consumers can select messages
// without reading their values.
func (b *batch) addFactHeaders(f *event.Facts) {
	b.addHeader(event.HeaderName, string(f.Name))
	for _, h := range [...]struct{ key, value string }{
		{event.HeaderAgent, f.AgentID}, {event.HeaderQueue, f.QueueID}, {event.HeaderCall, f.CallID},
	} {
		if h.value != "" {
			b.addHeader(h.key, h.value)
		}
	}
}

// addAgentQueues adds a header with the agent's other queues, by which supervisors of these
// queues see the event.
func (b *batch) addAgentQueues(account string, f *event.Facts) {
	if b.partitionState == nil || f.AgentID == "" {
		return
	}

	agent := b.partitionState.Find(state.Key{Account: account, Kind: state.Agent, ID: f.AgentID})
	if agent == nil {
		return
	}

	start := len(b.buffer)
	for _, queue := range agent.Queues {
		if queue == f.QueueID || strings.Contains(queue, event.QueueSeparator) {
			continue
		}
		if len(b.buffer) > start {
			b.buffer = append(b.buffer, event.QueueSeparator...)
		}

		b.buffer = append(b.buffer, queue...)
	}

	if len(b.buffer) > start {
		b.headers = append(b.headers, kafka.Header{Key: event.HeaderAgentQueues, Value: b.appendedSince(start)})
	}
}

// normalizeCDR converts a raw call record to a row.
func normalizeCDR(ctx context.Context, b *batch, raw *kafka.Record, _ event.ID) error {
	f, _, err := b.formatOf(raw)
	if err != nil {
		return err
	}

	if f == nil {
		return format.Rejectf(Unrecognised, "no format header, and its keys tell no format")
	}

	var repairs event.CDRRepairs
	calendar := format.CallTimes{Recorded: raw.Time.Unix(), Repairs: &repairs}
	calendar.Zone, err = b.loadTimeZone(raw.Header(event.HeaderTimeZone))
	if err != nil {
		return err
	}

	record, replaced := f.ValidUTF8(raw.Value)
	row, err := f.ReadCDR(record, &b.scratch.fields, calendar)
	if err != nil {
		return err
	}

	row.AccountID, err = b.resolveAccount(ctx, row.AccountID, raw)
	if err != nil {
		return err
	}

	if err := row.Check(); err != nil {
		return format.Rejectf(format.OutOfRange, "%v", err)
	}

	value, err := json.Marshal(&row)
	if err != nil {
		return fmt.Errorf("writing a row: %w", err)
	}

	out := kafka.Record{Value: value, Time: raw.Time} // not shared with the batch
	firstHeader := len(b.headers)
	b.addHeader(event.HeaderAccount, row.AccountID)
	out.Key = b.headers[firstHeader].Value
	b.addPositionHeaders(raw)

	if row.OriginationCallID != "" {
		b.addHeader(event.HeaderOrigination, row.OriginationCallID)
	}
	if f.HasSeveralRecords != nil && f.HasSeveralRecords(&b.scratch.fields) {
		b.addHeader(event.HeaderOneOfSeveral, "1")
	}

	b.addTraceHeaders(raw, row.AccountID)
	if err := b.addEvent(out, firstHeader); err != nil {
		return err
	}

	// Counted only here: a dead letter is not repaired.
	if replaced {
		repairs.Text++
	}

	b.counts.addSourceRepairs(&repairs)
	return nil
}

// loadTimeZone returns the time zone of that name, nil for none. It caches the last one,
// because loading a zone reads files.
func (b *batch) loadTimeZone(name []byte) (*time.Location, error) {
	if len(name) == 0 {
		return nil, nil
	}

	if b.timeZone == nil || b.timeZone.String() != string(name) {
		zone, err := time.LoadLocation(string(name))
		if err != nil {
			return nil, format.Rejectf(format.WrongType, "header %s: not a time zone", event.HeaderTimeZone)
		}
		b.timeZone = zone
	}

	return b.timeZone, nil
}

// sourceOf returns the feed or API key that sent the record.
func sourceOf(raw *kafka.Record) string {
	s := raw.Header(event.HeaderSource)
	if len(s) > 0 {
		return string(s)
	}
	return "kafka"
}
