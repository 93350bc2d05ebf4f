package kazoo

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"hash/maphash"
	"io"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/kazoo"
	"trunkline/ingest/feed"
	"trunkline/internal/jsonscan"
)

const maxMessageBytes = 8 << 20 // of a decompressed message

// Keys of a message from which its account and call record are derived.
var (
	messageKeys = jsonscan.KeysOf("Realm", "Custom-Channel-Vars", "Call-ID", "Origination-Call-ID", "Event-Name")
	realmKeys   = jsonscan.KeysOf("Realm", "Account-Realm")
)

// Slots of messageKeys.
const (
	msgRealm = iota
	msgVars
	msgCall
	msgOrigination
	msgName
	msgFields
)

// appendEvents appends the events of a message. A message of no known format is stored without one, for the
// normalizer.
func (p *platform) appendEvents(ctx context.Context, events []feed.Event, d amqp.Delivery) []feed.Event {
	e := feed.Event{Topic: event.TopicRaw, Value: d.Body, Delivery: d.DeliveryTag}
	body, err := decompress(d)
	if err != nil {
		p.log.WarnContext(ctx, "unreadable message", "exchange", d.Exchange, "error", err)
		return append(events, e)
	}

	e.Value = body
	var fields format.Fields
	var values [msgFields]jsonscan.Value
	f, err := kazoo.FormatOfMessage(body, &fields)
	if err != nil || f == nil || messageKeys.Scan(body, values[:]) != nil {
		return append(events, e)
	}

	e.Format, e.Topic = f.Name, f.Topic
	var realm [2]jsonscan.Value
	realmKeys.ScanObject(values[msgVars], realm[:])
	id, err := f.NamedAccount(body)
	if err != nil { // the normalizer records the reason in a dead letter
		return append(events, e)
	}

	named := format.FirstText(values[msgRealm], realm[0], realm[1])
	e.Account, e.Names = p.resolveAccount(id, named)
	// An account that Crossbar has and the directory not yet.
	if e.Account == "" && id != "" && p.syncUnknownAccount(ctx, id) {
		e.Account, e.Names = p.resolveAccount(id, named)
	}

	if f == kazoo.CallRecord {
		return append(events, p.callRecord(e, values[:]))
	}

	facts, err := f.ReadEvent(body, &fields)
	if err == nil {
		e.Subjects = subjects(&facts.Facts)
	}

	events = append(events, e)
	call, origination := format.Text(values[msgCall]), format.Text(values[msgOrigination])
	// Any event of the call may have it; the report at the end has not.
	if origination != "" {
		p.originations.put(call, origination)
	}

	if values[msgName].Is("CHANNEL_DESTROY") && (p.cdrEvents || origination != "") {
		// The message is acknowledged with its last event.
		events[len(events)-1].Delivery--
		e.Topic, e.Format, e.Subjects = kazoo.CallRecord.Topic, kazoo.CallRecord.Name, nil
		events = append(events, e)
	}

	return events
}

// callRecord returns the event of a call record, with the origination id that the call's events had.
func (p *platform) callRecord(e feed.Event, values []jsonscan.Value) feed.Event {
	if values[msgOrigination] != nil {
		return e
	}

	id := p.originations.find(format.Text(values[msgCall]))
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(e.Value, " \t\r\n"), []byte("{"))
	if id == "" || !ok {
		return e
	}

	value := append([]byte(`{"Origination-Call-ID":`), event.AppendString(nil, id)...)
	e.Value = append(append(value, ','), rest...)
	return e
}

// subjects returns the ids of an event's agent and call.
func subjects(f *event.Facts) (ids []string) {
	for _, id := range []string{f.AgentID, f.CallID} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// decompress returns the JSON of a message, which may be compressed.
func decompress(d amqp.Delivery) ([]byte, error) {
	if d.ContentEncoding != "gzip" {
		return d.Body, nil
	}

	from, err := gzip.NewReader(bytes.NewReader(d.Body))
	if err != nil {
		return nil, fmt.Errorf("decompressing a message: %w", err)
	}

	body, err := io.ReadAll(io.LimitReader(from, maxMessageBytes+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing a message: %w", err)
	}

	if len(body) > maxMessageBytes {
		return nil, fmt.Errorf("decompressing a message: it has over %d bytes", maxMessageBytes)
	}

	return body, nil
}

// digest returns a hash that identifies a redelivered message.
func (p *platform) digest(d amqp.Delivery) uint64 {
	var h maphash.Hash
	h.SetSeed(p.seed)
	for _, part := range [][]byte{[]byte(d.Exchange), []byte(d.RoutingKey), []byte(d.Timestamp.String()), d.Body} {
		_, _ = h.Write(part) // never fails
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}
