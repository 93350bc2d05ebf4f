package normalizer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
	"trunkline/internal/tracing"
)

// requestBytes is a lower bound of the size of one produce request (see
// kafka.ProducerConfig.BatchBytes). A batch fits in one request, so that it is written
// completely or not at all.
const requestBytes = 900_000

// stateBytes is the maximum size of the state records changed by one batch, as
// estimated by event/state: they also fit in one request.
const stateBytes = 700_000

// batch holds the messages and dead letters of consecutive raw records. Its memory is
// reused for the next batch.
type batch struct {
	route     *route
	partition int
	accounts  Accounts
	state     *state.Partition // nil: the route has no state
	limit     int              // maximum size of one produced record in bytes
	panics    *panics.Recoverer

	cloudEvents bool // Settings.CloudEvents

	generation int           // of the raw log
	topicID    kafka.TopicID // of the raw log
	deadBefore int64         // dead letters of records below it were written, and their repeats counted, earlier

	now        time.Time
	taken      int      // raw records in the batch
	last       event.ID // id of the last of them
	events     []kafka.Record
	size       int // bytes of events
	dead       []kafka.Record
	bytes      []byte         // backing memory of events and headers
	headers    []kafka.Header // backing memory of the headers of events and dead letters
	fields     format.Fields  // of the current record
	scratch    registry.Scratch
	formatName string         // of the current record
	identity   event.Identity // of the current record; zero: none
	timeZone   *time.Location
	counts     counts
	traces     traces

	sourceLog   []byte // header for topicID and sourceEpoch; nil: not created yet
	sourceEpoch int32
}

func (b *batch) reset(prev event.ID) {
	b.now, b.taken, b.last, b.size = time.Now(), 0, prev, 0
	clear(b.events)
	clear(b.dead)
	clear(b.headers)
	b.events, b.dead, b.headers, b.bytes = b.events[:0], b.dead[:0], b.headers[:0], b.bytes[:0]
	b.counts.reset()
	b.traces.reset()
	if b.state != nil {
		b.state.Reset()
	}
}

// fill adds at most limit raw records, until the batch is full. After an error the
// batch contains the records before the failed one. A record that does not become an
// event of the batch does not change the state.
func (b *batch) fill(ctx context.Context, raw []kafka.Record, limit int) error {
	for i := range raw[:limit] {
		id := event.NextID(b.last, raw[i].Time.UnixMilli(), b.partition)
		if b.identify(&raw[i]); b.isRepeat(id) {
			if raw[i].Offset >= b.deadBefore {
				b.counts.repeats++
			}
			b.taken, b.last = b.taken+1, id
			continue
		}
		size, events := b.size, len(b.events)
		before := b.mark()
		b.traces.begin(b.route.raw, &raw[i])
		if err := b.normalize(ctx, &raw[i], id); err != nil {
			b.undo(before)
			var why *format.Rejection
			if !errors.As(err, &why) {
				b.traces.discard()
				return err
			}
			b.reject(&raw[i], why)
		} else if events > 0 && (b.size > requestBytes || b.state != nil && b.state.Bytes() > stateBytes) {
			b.undo(before)
			b.size, b.events = size, b.events[:events] // it starts the next batch
			b.traces.discard()
			return nil
		} else {
			b.counts.format(b.formatName).normalized++
		}
		b.taken, b.last = b.taken+1, id
	}
	return nil
}

// identify sets the identity of the current record. It ignores an invalid header.
func (b *batch) identify(raw *kafka.Record) {
	b.identity = event.Identity{}
	if header := raw.Header(event.HeaderIdentity); header != nil && b.state != nil {
		b.identity, _ = event.ParseIdentity(string(header))
	}
}

// isRepeat reports whether an event before id has the identity of the current record.
func (b *batch) isRepeat(id event.ID) bool {
	return b.identity.Run != "" && b.state.Seen(id, b.identity)
}

// mark returns the current state, to which undo returns.
func (b *batch) mark() (m state.Mark) {
	if b.state != nil {
		m = b.state.Mark()
	}
	return m
}

func (b *batch) undo(m state.Mark) {
	if b.state != nil {
		b.state.Rollback(m)
	}
}

// rejectFirst replaces the batch, which must be empty, by the dead letter of raw.
func (b *batch) rejectFirst(raw *kafka.Record, why *format.Rejection) {
	b.traces.begin(b.route.raw, raw)
	b.reject(raw, why)
	b.taken, b.last = 1, event.NextID(b.last, raw.Time.UnixMilli(), b.partition)
}

// reject makes raw a dead letter, unless an earlier batch has written it.
func (b *batch) reject(raw *kafka.Record, why *format.Rejection) {
	b.traces.reject(why)
	if raw.Offset < b.deadBefore {
		return
	}
	b.addDeadLetter(raw, why)
	b.counts.format(b.formatName).dead++
	b.counts.kinds[why.Kind]++
}

// placeRecord is the label of panics in the normalization of one record.
const placeRecord = "normalizer_record"

// normalize normalizes one record. A panic makes only this record a dead letter.
func (b *batch) normalize(ctx context.Context, raw *kafka.Record, id event.ID) (err error) {
	defer func() {
		if p := recover(); p != nil {
			b.panics.Report(placeRecord, p, "topic", b.route.raw, "partition", b.partition, "offset", raw.Offset)
			err = format.Rejectf(Internal, "the normalizer failed on it")
		}
	}()
	b.formatName = formatUnknown
	return b.route.normalize(ctx, b, raw, id)
}

// formatOf returns the record's format according to its header, or else its keys. If
// neither names one, f is nil and account is the account that the record names.
func (b *batch) formatOf(raw *kafka.Record) (f *format.Format, account string, err error) {
	if name := raw.Header(event.HeaderFormat); name != nil {
		if f, _ = registry.Lookup(string(name)); f == nil || f.Topic != b.route.raw {
			return nil, "", format.Rejectf(UnknownFormat, "the format header names no format of this topic")
		}
	} else if f, account, err = registry.Recognise(b.route.raw, raw.Value, &b.scratch); err != nil {
		return nil, "", err
	}
	if f != nil {
		b.formatName = f.Name
	}
	return f, account, nil
}

// resolveAccount returns the account named by the record, or else by its key, if it
// exists. Records of a live feed have the account in the key: the feed's rules may map
// a name on the platform to another account.
func (b *batch) resolveAccount(ctx context.Context, named string, raw *kafka.Record) (string, error) {
	if named == "" || len(raw.Key) > 0 && bytes.HasPrefix(raw.Header(event.HeaderSource), sourceFeed) {
		named = string(raw.Key)
	}
	if named == "" {
		return "", format.Rejectf(NoAccount, "neither the record nor its key names an account")
	}
	if !event.ValidAccountID(named) {
		return "", format.Rejectf(UnknownAccount, "it names an account that cannot exist: an id is 1 to 64 of A-Z a-z 0-9 _ . -")
	}
	exists, err := b.accounts.Exists(ctx, named)
	if err != nil {
		return "", fmt.Errorf("looking up an account: %w", err)
	}
	if !exists {
		return "", format.Rejectf(UnknownAccount, "it names an account that does not exist")
	}
	return named, nil
}

// sourceFeed is the prefix of the source of live feeds' records.
var sourceFeed = []byte("feed:")

// appended returns the bytes appended since start. Later appends do not change them,
// even if they reallocate bytes.
func (b *batch) appended(start int) []byte { return b.bytes[start:len(b.bytes):len(b.bytes)] }

func (b *batch) header(key, value string) {
	start := len(b.bytes)
	b.bytes = append(b.bytes, value...)
	b.headers = append(b.headers, kafka.Header{Key: key, Value: b.appended(start)})
}

// trace adds the headers of raw's trace, so that consumers continue it.
func (b *batch) trace(raw *kafka.Record, account string) {
	b.traces.setAccount(account)
	if b.traces.current.Parent != "" {
		b.headers = b.traces.current.AppendHeaders(b.headers)
	} else if parent := raw.Header(event.HeaderTrace); parent != nil {
		b.header(event.HeaderTrace, string(parent))
		if state := raw.Header(event.HeaderTraceState); state != nil && len(state) <= tracing.MaxState {
			b.header(event.HeaderTraceState, string(state))
		}
	}
}

// position adds the headers with which consumers detect repeats, and with which the
// next worker of the partition finds its start and detects truncation of the raw log.
func (b *batch) position(raw *kafka.Record) {
	start := len(b.bytes)
	b.bytes = event.Position{Partition: b.partition, Offset: raw.Offset, Generation: b.generation}.Append(b.bytes)
	if b.sourceLog == nil || b.sourceEpoch != raw.LeaderEpoch {
		b.sourceLog, b.sourceEpoch = appendSourceLog(nil, b.topicID, raw.LeaderEpoch), raw.LeaderEpoch
	}
	b.headers = append(b.headers, kafka.Header{Key: event.HeaderPosition, Value: b.appended(start)},
		kafka.Header{Key: event.HeaderSourceLog, Value: b.sourceLog})
}

// add adds out to the batch, with the headers appended since from.
func (b *batch) add(out kafka.Record, from int) error {
	out.Topic, out.Partition = b.route.out, b.partition
	out.Headers = b.headers[from:len(b.headers):len(b.headers)]
	size := recordBytes(&out)
	if size > b.limit {
		return rejectTooLarge()
	}
	b.size += size
	b.events = append(b.events, out)
	return nil
}

// addDeadLetter adds raw unchanged, with the reason in headers.
func (b *batch) addDeadLetter(raw *kafka.Record, why *format.Rejection) {
	from := len(b.headers)
	for _, h := range raw.Headers {
		switch h.Key {
		case event.HeaderErrorKind, event.HeaderError, event.HeaderOrigTopic, event.HeaderOrigPartition, event.HeaderOrigOffset:
		default:
			b.headers = append(b.headers, h)
		}
	}
	b.header(event.HeaderErrorKind, string(why.Kind))
	b.header(event.HeaderError, why.Reason)
	b.header(event.HeaderOrigTopic, b.route.raw)
	b.header(event.HeaderOrigPartition, strconv.Itoa(b.partition))
	b.header(event.HeaderOrigOffset, strconv.FormatInt(raw.Offset, 10))
	b.dead = append(b.dead, kafka.Record{
		Topic: event.TopicDead, Partition: kafka.AnyPartition, Key: raw.Key, Value: raw.Value,
		Headers: b.headers[from:len(b.headers):len(b.headers)],
	})
}

// recordBytes returns an upper bound of the size of a record that counts against the
// topic's limit.
func recordBytes(r *kafka.Record) int {
	n := 64 + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + 10
	}
	return n
}
