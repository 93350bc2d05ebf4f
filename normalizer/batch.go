package normalizer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"trunkline/event"
	"trunkline/event/state"
	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
	"trunkline/internal/tracing"
)

// maxRequestBytes is a lower bound of the size of one produce request (see
// kafka.ProducerConfig.BatchBytes). A batch fits in one request, so that it is written
// completely or not at all.
const maxRequestBytes = 900_000

// maxStateBytes is the maximum size of the state records changed by one batch, as
// estimated by event/state: they also fit in one request.
const maxStateBytes = 700_000

// batch holds the messages and dead letters of consecutive raw records. Its memory is
// reused for the next batch.
type batch struct {
	conversion     *conversion
	partition      int
	accounts       Accounts
	partitionState *state.Partition // nil: the route has no state
	maxRecordBytes int              // maximum size of one produced record in bytes
	panics         *panics.Recoverer

	cloudEvents bool // Settings.CloudEvents

	generation               int           // of the raw log
	topicID                  kafka.TopicID // of the raw log
	deadLettersWrittenBefore int64         // dead letters of records below it were written, and their repeats counted, earlier

	now         time.Time
	rawRecords  int      // raw records in the batch
	lastID      event.ID // id of the last of them
	events      []kafka.Record
	eventBytes  int // bytes of events, as recordBytes estimates them
	deadLetters []kafka.Record
	buffer      []byte         // memory of the values in events and headers
	headers     []kafka.Header // memory of the headers of events and dead letters
	callData    []byte         // of the current record, if it is a call event
	scratch     *scratch       // while fill runs
	formatName  string         // of the current record
	identity    event.Identity // of the current record; zero: none
	timeZone    *time.Location
	counts      counts
	traces      traces

	sourceLog   []byte // header for topicID and sourceEpoch; nil: not created yet
	sourceEpoch int32
}

// scratch is memory for parsing one record.
type scratch struct {
	fields  format.Fields    // of the current record
	unnamed registry.Scratch // of a record without a format header
}

// scratches are shared by the partitions: a scratch has tens of kilobytes, and most partitions rest.
var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (b *batch) reset(prev event.ID) {
	b.now, b.rawRecords, b.lastID, b.eventBytes = time.Now(), 0, prev, 0
	clear(b.events)
	clear(b.deadLetters)
	clear(b.headers)
	b.events, b.deadLetters, b.headers, b.buffer = b.events[:0], b.deadLetters[:0], b.headers[:0], b.buffer[:0]
	b.counts.reset()
	b.traces.reset()

	if b.partitionState != nil {
		// What a batch that was not written has changed is undone.
		b.partitionState.Reset()
	}
}

// fill adds at most limit raw records, until the batch is full. After an error the
// batch contains the records before the failed one. A record that does not become an
// event of the batch does not change the state.
func (b *batch) fill(ctx context.Context, raw []kafka.Record, limit int) error {
	b.scratch = scratches.Get().(*scratch)
	defer func() {
		scratches.Put(b.scratch)
		b.scratch = nil
	}()

	for i := range raw[:limit] {
		id := event.NextID(b.lastID, raw[i].Time.UnixMilli(), b.partition)
		b.readIdentity(&raw[i])
		if b.isRepeat(id) {
			if raw[i].Offset >= b.deadLettersWrittenBefore {
				b.counts.repeats++
			}
			b.rawRecords, b.lastID = b.rawRecords+1, id
			continue
		}

		size, events, repairs := b.eventBytes, len(b.events), b.counts.sourceRepairs
		mark := b.markState()
		b.traces.begin(b.conversion.rawTopic, &raw[i])

		if err := b.normalize(ctx, &raw[i], id); err != nil {
			b.rollbackState(mark)
			var rejection *format.Rejection
			if !errors.As(err, &rejection) {
				b.traces.discard()
				return err
			}

			b.reject(&raw[i], rejection)
		} else if events > 0 && (b.eventBytes > maxRequestBytes ||
			b.partitionState != nil && b.partitionState.Bytes() > maxStateBytes) {
			b.rollbackState(mark)
			// The record starts the next batch.
			b.eventBytes, b.events, b.counts.sourceRepairs = size, b.events[:events], repairs
			b.traces.discard()
			return nil
		} else {
			b.counts.format(b.formatName).normalized++
		}

		b.rawRecords, b.lastID = b.rawRecords+1, id
	}

	return nil
}

// readIdentity sets the identity of the current record. It ignores an invalid header.
func (b *batch) readIdentity(raw *kafka.Record) {
	b.identity = event.Identity{}
	header := raw.Header(event.HeaderIdentity)
	if header != nil && b.partitionState != nil {
		b.identity, _ = event.ParseIdentity(string(header))
	}
}

// isRepeat reports whether an event before id has the identity of the current record.
func (b *batch) isRepeat(id event.ID) bool {
	return b.identity.Run != "" && b.partitionState.Seen(id, b.identity)
}

// markState returns the mark of the current state for rollbackState.
func (b *batch) markState() (m state.RollbackPoint) {
	if b.partitionState != nil {
		m = b.partitionState.Mark()
	}
	return m
}

func (b *batch) rollbackState(m state.RollbackPoint) {
	if b.partitionState != nil {
		b.partitionState.Rollback(m)
	}
}

// rejectFirst replaces the batch, which must be empty, by the dead letter of raw.
func (b *batch) rejectFirst(raw *kafka.Record, rejection *format.Rejection) {
	b.traces.begin(b.conversion.rawTopic, raw)
	b.reject(raw, rejection)
	b.rawRecords, b.lastID = 1, event.NextID(b.lastID, raw.Time.UnixMilli(), b.partition)
}

// reject makes raw a dead letter, unless an earlier batch has written it.
func (b *batch) reject(raw *kafka.Record, rejection *format.Rejection) {
	b.traces.reject(rejection)
	if raw.Offset < b.deadLettersWrittenBefore {
		return
	}
	b.addDeadLetter(raw, rejection)
	b.counts.format(b.formatName).dead++
	b.counts.kinds[rejection.Kind]++
}

// panicInRecord is the metric label of panics in the normalization of one record.
const panicInRecord = "normalizer_record"

// normalize normalizes one record. A panic makes only this record a dead letter.
func (b *batch) normalize(ctx context.Context, raw *kafka.Record, id event.ID) (err error) {
	defer func() {
		p := recover()
		if p != nil {
			b.panics.Report(panicInRecord, p, "topic", b.conversion.rawTopic, "partition", b.partition,
				"offset", raw.Offset)
			err = format.Rejectf(Internal, "the normalizer failed on it")
		}
	}()

	b.formatName = formatUnknown
	if raw.Oversized > 0 {
		return format.Rejectf(TooLarge, "it has %d bytes decompressed", raw.Oversized)
	}

	return b.conversion.normalize(ctx, b, raw, id)
}

// formatOf returns the record's format according to its header, or else its keys. If
// neither names one, f is nil and account is the account that the record names.
func (b *batch) formatOf(raw *kafka.Record) (f *format.Format, account string, err error) {
	name := raw.Header(event.HeaderFormat)
	if name != nil {
		f, _ = registry.Lookup(string(name))
		if f == nil || f.Topic != b.conversion.rawTopic {
			return nil, "", format.Rejectf(UnknownFormat, "the format header names no format of this topic")
		}
	} else {
		f, account, err = registry.Recognise(b.conversion.rawTopic, raw.Value, &b.scratch.unnamed)
		if err != nil {
			return nil, "", err
		}
	}

	if f != nil {
		b.formatName = f.Name
	}

	return f, account, nil
}

// resolveAccount returns the account named by the record, or else by its key, if it
// exists. Records of a live feed have the account in the key: the feed's rules may map
// a name on the platform to another account.
func (b *batch) resolveAccount(ctx context.Context, account string, raw *kafka.Record) (string, error) {
	fromFeed := bytes.HasPrefix(raw.Header(event.HeaderSource), feedSourcePrefix)
	if account == "" || len(raw.Key) > 0 && fromFeed {
		account = string(raw.Key)
	}
	if account == "" && fromFeed {
		return "", format.Rejectf(UnknownAccount,
			"no rule of the feed and no domain of an account matches the names in the header "+event.HeaderAccountNames)
	}
	if account == "" {
		return "", format.Rejectf(NoAccount, "neither the record nor its key names an account")
	}
	if !event.ValidAccountID(account) {
		return "", format.Rejectf(UnknownAccount,
			"it names an account that cannot exist: an id is 1 to 64 of A-Z a-z 0-9 _ . -")
	}

	exists, err := b.accounts.Exists(ctx, account)
	if err != nil {
		return "", fmt.Errorf("looking up an account: %w", err)
	}

	if !exists {
		return "", format.Rejectf(UnknownAccount, "it names an account that does not exist")
	}

	return account, nil
}

// feedSourcePrefix is the prefix of the source of live feeds' records.
var feedSourcePrefix = []byte("feed:")

// appendedSince returns the bytes appended since start. Later appends do not change them,
// even if they reallocate bytes.
func (b *batch) appendedSince(start int) []byte { return b.buffer[start:len(b.buffer):len(b.buffer)] }

func (b *batch) addHeader(key, value string) {
	start := len(b.buffer)
	b.buffer = append(b.buffer, value...)
	b.headers = append(b.headers, kafka.Header{Key: key, Value: b.appendedSince(start)})
}

// addTraceHeaders adds the headers of raw's trace, so that consumers continue it.
func (b *batch) addTraceHeaders(raw *kafka.Record, account string) {
	b.traces.setAccount(account)
	if b.traces.current.Parent != "" {
		b.headers = b.traces.current.AppendHeaders(b.headers)
		return
	}

	parent := raw.Header(event.HeaderTrace)
	if parent != nil {
		b.addHeader(event.HeaderTrace, string(parent))
		state := raw.Header(event.HeaderTraceState)
		if state != nil && len(state) <= tracing.MaxState {
			b.addHeader(event.HeaderTraceState, string(state))
		}
	}
}

// addPositionHeaders adds the headers with which consumers detect repeats, and with which the
// next worker of the partition finds its start and detects truncation of the raw log.
func (b *batch) addPositionHeaders(raw *kafka.Record) {
	start := len(b.buffer)
	b.buffer = event.Position{Partition: b.partition, Offset: raw.Offset, Generation: b.generation}.Append(b.buffer)
	if b.sourceLog == nil || b.sourceEpoch != raw.LeaderEpoch {
		// Not in bytes: the records of many batches share it.
		b.sourceLog, b.sourceEpoch = appendSourceLog(nil, b.topicID, raw.LeaderEpoch), raw.LeaderEpoch
	}
	b.headers = append(b.headers, kafka.Header{Key: event.HeaderPosition, Value: b.appendedSince(start)},
		kafka.Header{Key: event.HeaderSourceLog, Value: b.sourceLog})
}

// addEvent adds out to the batch, with the headers from firstHeader on.
func (b *batch) addEvent(out kafka.Record, firstHeader int) error {
	out.Topic, out.Partition = b.conversion.normalizedTopic, b.partition
	out.Headers = b.headers[firstHeader:len(b.headers):len(b.headers)]
	size := recordBytes(&out)
	if size > b.maxRecordBytes {
		return tooLargeRejection()
	}
	b.eventBytes += size
	b.events = append(b.events, out)
	return nil
}

// addDeadLetter adds raw unchanged, with the reason in headers.
func (b *batch) addDeadLetter(raw *kafka.Record, rejection *format.Rejection) {
	firstHeader := len(b.headers)
	for _, h := range raw.Headers {
		switch h.Key {
		case event.HeaderErrorKind, event.HeaderError, event.HeaderOrigTopic, event.HeaderOrigPartition,
			event.HeaderOrigOffset:
		case event.HeaderSettledOutcome, event.HeaderSettledOffsets: // else a raw record could settle others' letters
		default:
			b.headers = append(b.headers, h)
		}
	}

	b.addHeader(event.HeaderErrorKind, string(rejection.Kind))
	b.addHeader(event.HeaderError, rejection.Reason)
	b.addHeader(event.HeaderOrigTopic, b.conversion.rawTopic)
	b.addHeader(event.HeaderOrigPartition, strconv.Itoa(b.partition))
	b.addHeader(event.HeaderOrigOffset, strconv.FormatInt(raw.Offset, 10))
	b.deadLetters = append(b.deadLetters, kafka.Record{
		Topic: event.TopicDead, Partition: kafka.AnyPartition, Key: raw.Key, Value: raw.Value,
		Headers: b.headers[firstHeader:len(b.headers):len(b.headers)],
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
