package kazoo

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"

	"trunkline/event"
	"trunkline/format"
	"trunkline/format/kazoo"
	"trunkline/ingest/feed"
	"trunkline/internal/jsonscan"
)

const maxMessage = 8 << 20 // bytes of a decompressed message

// Keys of a message from which its account and call record are derived.
var (
	messageKeys = jsonscan.KeysOf("Realm", "Custom-Channel-Vars", "Call-ID", "Origination-Call-ID", "Event-Name")
	realmKeys   = jsonscan.KeysOf("Realm", "Account-Realm")
)

const (
	msgRealm = iota
	msgVars
	msgCall
	msgOrigination
	msgName
	msgFields
)

// read appends the events of a message. A message of no known format is stored without one, for the
// normalizer.
func (p *platform) read(ctx context.Context, events []feed.Event, d amqp.Delivery) []feed.Event {
	e := feed.Event{Topic: event.TopicRaw, Value: d.Body, Delivery: d.DeliveryTag}
	body, err := decode(d)
	if err != nil {
		p.log.WarnContext(ctx, "unreadable message", "exchange", d.Exchange, "error", err)
		return append(events, e)
	}
	e.Value = body
	var fields format.Fields
	var seen [msgFields]jsonscan.Value
	f, err := kazoo.FormatOfMessage(body, &fields)
	if err != nil || f == nil || messageKeys.Scan(body, seen[:]) != nil {
		return append(events, e)
	}
	e.Format, e.Topic = f.Name, f.Topic
	var realm [2]jsonscan.Value
	realmKeys.ScanObject(seen[msgVars], realm[:])
	id, err := f.NamedAccount(body)
	if err != nil { // the normalizer records the reason in a dead letter
		return append(events, e)
	}
	e.Account, e.Names = p.account(id, format.FirstText(seen[msgRealm], realm[0], realm[1]))
	if e.Account == "" && id != "" && p.learnAccount(ctx, id) {
		e.Account, e.Names = p.account(id, "")
	}
	if f == kazoo.CallRecord {
		return append(events, p.callRecord(e, seen[:]))
	}
	facts, err := f.ReadEvent(body, &fields)
	if err == nil {
		e.Subjects = subjects(&facts.Facts)
	}
	events = append(events, e)
	call, origination := format.Text(seen[msgCall]), format.Text(seen[msgOrigination])
	if origination != "" {
		p.originations.put(call, origination)
	}
	if seen[msgName].Is("CHANNEL_DESTROY") && (p.cdrEvents || origination != "") {
		// The message is acknowledged with its last event.
		events[len(events)-1].Delivery--
		e.Topic, e.Format, e.Subjects = kazoo.CallRecord.Topic, kazoo.CallRecord.Name, nil
		events = append(events, e)
	}
	return events
}

// callRecord adds the origination id from the call's events.
func (p *platform) callRecord(e feed.Event, seen []jsonscan.Value) feed.Event {
	if seen[msgOrigination] != nil {
		return e
	}
	id := p.originations.find(format.Text(seen[msgCall]))
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(e.Value, " \t\r\n"), []byte("{"))
	if id == "" || !ok {
		return e
	}
	value := append([]byte(`{"Origination-Call-ID":`), event.AppendString(nil, id)...)
	e.Value = append(append(value, ','), rest...)
	return e
}

func subjects(f *event.Facts) (ids []string) {
	for _, id := range []string{f.AgentID, f.CallID} {
		if id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// decode returns the JSON of a message, which may be compressed.
func decode(d amqp.Delivery) ([]byte, error) {
	if d.ContentEncoding != "gzip" {
		return d.Body, nil
	}
	from, err := gzip.NewReader(bytes.NewReader(d.Body))
	if err != nil {
		return nil, fmt.Errorf("decompressing a message: %w", err)
	}
	body, err := io.ReadAll(io.LimitReader(from, maxMessage+1))
	if err != nil {
		return nil, fmt.Errorf("decompressing a message: %w", err)
	}
	if len(body) > maxMessage {
		return nil, fmt.Errorf("decompressing a message: it has over %d bytes", maxMessage)
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

// recent is the set of the last prefetch messages that Kafka has. RabbitMQ redelivers no others.
type recent struct {
	mu    sync.Mutex
	ring  [prefetch]uint64
	next  int
	count map[uint64]int
}

func (r *recent) add(digest uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count = make(map[uint64]int, prefetch)
	}
	if old := r.ring[r.next]; r.count[old] > 1 {
		r.count[old]--
	} else {
		delete(r.count, old)
	}
	r.ring[r.next] = digest
	r.next = (r.next + 1) % len(r.ring)
	r.count[digest]++
}

func (r *recent) contains(digest uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count[digest] > 0
}

// originations has the origination ids of the newest calls with one, at most 2*maxOriginations.
type originations struct {
	mu          sync.Mutex
	young, aged map[string]string
}

const maxOriginations = 10_000

func (o *originations) put(call, origination string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.young == nil || len(o.young) >= maxOriginations {
		o.young, o.aged = make(map[string]string), o.young
	}
	o.young[call] = origination
}

func (o *originations) find(call string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if id, ok := o.young[call]; ok {
		return id
	}
	return o.aged[call]
}
