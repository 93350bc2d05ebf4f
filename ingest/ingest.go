package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/format"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
	"trunkline/internal/setting"
	"trunkline/internal/sqldb"
	"trunkline/internal/tracing"
)

// Producer writes records to Kafka. A nil error means that all of them are durable.
type Producer interface {
	// Produce writes the records and returns nil only if all of them are durable. It copies them at
	// once. If a record is larger than topics.MaxRecordBytes, it returns fault.KindTooLarge and
	// sends none. kafka.ErrTopicLimit means that the topic rejects at least one record, and that all
	// others are durable. Any other error means that at least one record is not known to be
	// durable; if it wraps kafka.ErrOutcomeUnknown, as after the end of ctx, some may have been written
	// all the same.
	Produce(ctx context.Context, records ...kafka.Record) error
}

// Accounts decides which accounts a caller's records may name: the caller's own account and its
// descendants.
type Accounts interface {
	MayIngestFor(caller *identity.Principal, accountID string) bool
}

// Log reads the raw topics. *kafka.Cluster implements it.
type Log interface {
	// KeyPartition returns the partition of records with the key, for the topic's current number of
	// partitions. It queries a broker only about a topic that is not cached.
	KeyPartition(ctx context.Context, topic string, key []byte) (int, error)
	// OffsetAt returns the first offset whose record has a timestamp at or after at, or the offset
	// of the next record if there is none.
	OffsetAt(ctx context.Context, topic string, partition int, t time.Time) (int64, error)
	// Scan calls each for the records of a partition with offsets in [from, to), in order. It skips
	// deleted and damaged records; if the end of the damage is unknown, it skips the rest. A record
	// is valid during its call only. Scan returns fault.KindUnavailable if the log was truncated
	// during the scan.
	Scan(ctx context.Context, topic string, partition int, from, to int64, each func(*kafka.Record)) error
}

// Deps are the dependencies of an Ingest.
type Deps struct {
	Formats   func(name string) (f *format.Format, ok bool)
	Accounts  Accounts
	Producer  Producer
	LogReader Log             // finds bodies whose result is unknown
	DB        *sqldb.DB       // stores Idempotency-Keys
	Tracer    *tracing.Tracer // nil disables tracing
}

// Ingest stores bodies in Kafka. It is safe for concurrent use.
type Ingest struct {
	settings  Settings
	formats   func(name string) (f *format.Format, ok bool)
	accounts  Accounts
	producer  Producer
	kafka     Log // the raw topics
	tracer    *tracing.Tracer
	log       *slog.Logger
	metrics   *metrics
	admission *admission
	keys      *keyStore // the Idempotency-Keys
}

// New returns an Ingest and migrates its tables. The caller must call Run.
func New(ctx context.Context, settings Settings, deps Deps, reg prometheus.Registerer,
	log *slog.Logger) (*Ingest, error) {
	i, err := newIngest(settings, deps, reg, log)
	if err != nil {
		return nil, err
	}
	i.keys, err = newKeyStore(ctx, deps.DB)
	if err != nil {
		return nil, err
	}
	return i, nil
}

// newIngest returns an Ingest without the store of Idempotency-Keys.
func newIngest(settings Settings, deps Deps, reg prometheus.Registerer, log *slog.Logger) (*Ingest, error) {
	if err := setting.Validate("ingest", settings); err != nil {
		return nil, err
	}

	i := &Ingest{
		settings: settings,
		formats:  deps.Formats,
		accounts: deps.Accounts,
		producer: deps.Producer,
		kafka:    deps.LogReader,
		tracer:   deps.Tracer,
		log:      log,
		admission: &admission{
			limit: int64(settings.MaxInFlightBytes), maxBodies: settings.MaxBodiesPerCaller,
			maxWait: settings.ProduceTimeout,
			callers: make(map[string]*callerQueue),
		},
	}
	i.metrics = newMetrics(reg, []string{event.TopicRaw, event.TopicCDRRaw}, i.admission.stats)

	return i, nil
}

// Run deletes expired Idempotency-Keys until ctx ends.
func (i *Ingest) Run(ctx context.Context) error {
	for range retry.Ticks(ctx, purgeInterval) {
		err := i.keys.purge(ctx)
		if err != nil && ctx.Err() == nil {
			i.log.WarnContext(ctx, "purge of Idempotency-Keys failed", "error", err)
		}
	}
	return nil
}

// Request is a body as it arrived over HTTP. Headers that are absent are "".
type Request struct {
	Format          string
	ContentType     string
	ContentEncoding string
	ContentLength   int64 // -1 when unknown
	Body            io.Reader
	Caller          *identity.Principal
	Trace           string // traceparent; written to the records if it is valid and tracing is disabled
	IdempotencyKey  string // Idempotency-Key
}

// Result is the result of Accept.
type Result struct {
	Accepted int  // records of the body
	Replayed bool // an earlier request with the Idempotency-Key stored them
}

// Accept stores a body. A nil error means that Kafka has all of its records. An error means that this
// request stored nothing of the body, with two exceptions: after fault.KindUnavailable some or all of
// it may be stored, and for a record above its topic's size limit (fault.KindTooLarge) the records
// within the limit are stored.
func (i *Ingest) Accept(ctx context.Context, r Request) (Result, error) {
	result, err := i.storeBody(ctx, r)
	label := labelAccepted
	switch {
	case err != nil:
		label = string(fault.KindOf(err))
		i.logOverload(ctx, r, err)
	case result.Replayed:
		label = labelReplayed
	}

	i.metrics.bodies.WithLabelValues(label).Inc()
	return result, err
}

// logOverload logs a warning for a body that was refused because of other bodies: a source that does
// not retry loses it. The API logs bodies that Kafka refused.
func (i *Ingest) logOverload(ctx context.Context, r Request, err error) {
	f := fault.As(err)
	if f.Kind == fault.KindLimited || f.Kind == fault.KindUnavailable && f.Cause == nil {
		held, waiting := i.admission.stats()
		i.log.WarnContext(ctx, "body refused", "kind", f.Kind, "source", sourceName(r.Caller),
			"account", r.Caller.AccountID,
			"format", r.Format, "held_bytes", held, "waiting_bodies", waiting, "reason", f.Message)
	}
}

// storeBody is Accept without its metric and log.
func (i *Ingest) storeBody(ctx context.Context, r Request) (result Result, err error) {
	f, ok := i.formats(r.Format)
	if !ok || f.Internal {
		return result, fault.NotFound("Unknown format")
	}
	if err := checkKey(r.IdempotencyKey); err != nil {
		return result, err
	}

	encoding, err := selectEncoding(f, r.ContentType)
	if err != nil {
		return result, err
	}

	// Before admission: a body that is refused anyway takes nobody's turn.
	if r.ContentLength > MaxBody {
		return result, errBodyTooLarge
	}

	began := time.Now()
	memory, err := i.admission.acquire(ctx, sourceName(r.Caller), estimateMemory(r, encoding))
	i.metrics.wait.Observe(time.Since(began).Seconds())
	if err != nil {
		return result, err
	}

	// Who ends the body's work frees its memory: this call, or storeOnce, which may go on after it.
	release := memory.release
	defer func() { release() }()

	body, err := readBody(r, memory)
	if err != nil {
		return result, err
	}

	// A platform's source cannot be taught; another caller gets an error and corrects itself.
	if f.FromPlatform {
		body, err = i.replaceInvalidUTF8(body, memory)
		if err != nil {
			return result, err
		}
	}

	records, err := i.buildRecords(r, body, f, encoding, memory)
	if err != nil {
		return result, err
	}

	if r.IdempotencyKey != "" {
		release = func() {} // storeOnce may work longer than the request waits
		return i.storeOnce(ctx, r, body, f.Topic, records, memory)
	}

	ctx, cancel := context.WithTimeout(ctx, i.settings.ProduceTimeout)
	defer cancel()

	if err := i.produceRecords(ctx, r, f.Topic, records); err != nil {
		return result, err
	}

	return Result{Accepted: len(records)}, nil
}

// storeOnce stores the body unless it was stored under its Idempotency-Key. After ProduceTimeout it returns
// fault.KindUnavailable, and goes on until the result is known. It releases memory when it has ended.
func (i *Ingest) storeOnce(ctx context.Context, r Request, body []byte, topic string, records []kafka.Record,
	memory *reservation) (Result, error) {
	waitCtx, cancel := context.WithTimeout(ctx, i.settings.ProduceTimeout)
	defer cancel()

	claim, err := i.keys.claim(waitCtx, r.Caller.AccountID, sourceName(r.Caller), r.IdempotencyKey,
		digest(r.Format, body), len(records))
	if err != nil {
		memory.release()
		return Result{}, err
	}

	if claim.holder == "" {
		memory.release()
		return claim.storedResult(true)
	}

	type outcome struct {
		result Result
		err    error
	}

	// The request may end, the body's fate is found out all the same: only then its key tells what became of it.
	done := make(chan outcome, 1)
	go func() {
		defer memory.release()
		result, err := i.storeClaimed(context.WithoutCancel(ctx), r, topic, records, claim)
		done <- outcome{result, err}
	}()

	select {
	case o := <-done:
		return o.result, o.err
	case <-waitCtx.Done():
		return Result{}, fault.Unavailable(waitCtx.Err(), retryAfter,
			"Kafka has not acknowledged the body yet; send it again with its Idempotency-Key, under which it is stored once")
	}
}

// storeClaimed stores what Kafka does not have of a claimed body, and records the result.
func (i *Ingest) storeClaimed(ctx context.Context, r Request, topic string, records []kafka.Record,
	claim *keyClaim) (Result, error) {
	produceCtx, cancel := context.WithTimeout(ctx, storeTimeout)
	renewCtx, stop := context.WithCancel(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { i.keys.renewUntil(renewCtx, claim) })
	replayed, err := i.produceMissing(produceCtx, r, topic, records, claim)
	cancel()

	stop()
	renewing.Wait()

	ctx, cancel = context.WithTimeout(ctx, updateTimeout)
	defer cancel()

	update := i.keys.abandon
	// A topic's limit is an end too: a repeat would be refused again.
	if err == nil || fault.KindOf(err) == fault.KindTooLarge {
		claim.records, update = len(records), i.keys.complete
		if err != nil {
			claim.refusal = fault.As(err).Message
		}
	}

	updateErr := update(ctx, claim)
	if updateErr != nil {
		i.log.WarnContext(ctx, "Idempotency-Key not updated; a repeat looks the body up in Kafka", "stored", err == nil,
			"error", updateErr)
	}
	if err != nil {
		return Result{}, err
	}

	return claim.storedResult(replayed)
}

// produceMissing produces the records of a body that Kafka does not have from earlier attempts. It reports
// whether it has all of them.
func (i *Ingest) produceMissing(ctx context.Context, r Request, topic string, records []kafka.Record,
	claim *keyClaim) (hadAll bool, err error) {
	claim.numberRecords(records)
	// Of a first attempt nothing can be in Kafka.
	if !claim.isRepeat() {
		return false, i.produceRecords(ctx, r, topic, records)
	}

	stored, err := i.findRecords(ctx, topic, records, claim)
	if err != nil {
		return false, fault.Unavailable(fmt.Errorf("looking up a body in %s: %w", topic, err), retryAfter,
			"Kafka does not tell whether it has the body; send it again")
	}

	missing := slices.DeleteFunc(slices.Clone(records),
		func(r kafka.Record) bool { return stored[string(r.Header(event.HeaderBody))] })
	return len(missing) == 0 && len(records) > 0, i.produceRecords(ctx, r, topic, missing)
}

// numberRecords sets the headers with which the records of a body are found again, and by which the normalizer
// drops their second copies.
func (c *keyClaim) numberRecords(records []kafka.Record) {
	id, identity := c.bodyID(), c.identity
	for n := range records {
		identity.Number = c.identity.Number + uint64(n)
		records[n].Headers = []kafka.Header{{Key: event.HeaderBody, Value: fmt.Appendf(nil, "%s/%d", id, n)},
			{Key: event.HeaderIdentity, Value: identity.Append(nil)}}
	}
}

// findRecords returns the headers HeaderBody of the records of a body that Kafka has from earlier attempts. It
// reads what the partitions of the records' keys got at the time of the attempts.
func (i *Ingest) findRecords(ctx context.Context, topic string, records []kafka.Record,
	claim *keyClaim) (map[string]bool, error) {
	stored, prefix, scanned := map[string]bool{}, claim.bodyID()+"/", map[int]bool{}
	for n := range records {
		partition, err := i.kafka.KeyPartition(ctx, topic, records[n].Key)
		if err != nil {
			return nil, err
		}

		if scanned[partition] {
			continue
		}
		scanned[partition] = true

		from, err := i.kafka.OffsetAt(ctx, topic, partition, claim.attemptedFrom)
		if err != nil {
			return nil, err
		}

		to, err := i.kafka.OffsetAt(ctx, topic, partition, claim.attemptedUntil)
		if err != nil {
			return nil, err
		}

		err = i.kafka.Scan(ctx, topic, partition, from, to, func(r *kafka.Record) {
			header := string(r.Header(event.HeaderBody))
			if strings.HasPrefix(header, prefix) {
				stored[header] = true
			}
		})
		if err != nil {
			return nil, err
		}
	}

	return stored, nil
}

// storedResult returns the result of the request that stored the body.
func (c *keyClaim) storedResult(replayed bool) (Result, error) {
	if c.refusal != "" {
		return Result{}, fault.New(fault.KindTooLarge, "%s", c.refusal)
	}
	return Result{Accepted: c.records, Replayed: replayed}, nil
}

// estimateMemory estimates the memory that a body needs: its buffer, the records
// decoded from it, and their list.
func estimateMemory(r Request, encoding format.Encoding) int64 {
	const list = 2 << 10
	switch {
	case r.ContentLength < 0:
		return list + 2*initialBuffer
	case encoding.Copies:
		return list + 2*r.ContentLength
	default:
		return list + r.ContentLength
	}
}

// sourceName returns the caller's name in the header source and in admission.
func sourceName(caller *identity.Principal) string {
	if caller.IsKey() {
		return "apikey:" + caller.KeyID
	}
	return "user:" + caller.UserID
}

// produceRecords adds the headers of a request to its records, and produces them.
func (i *Ingest) produceRecords(ctx context.Context, r Request, topic string, records []kafka.Record) error {
	if len(records) == 0 {
		return nil
	}

	ctx, span := i.tracer.StartSend(ctx, topic, len(records))
	headers := i.recordHeaders(ctx, r)
	for n := range records {
		// The request's headers are one slice for all records; a numbered record has its own before them.
		own := records[n].Headers
		if own != nil {
			records[n].Headers = append(own, headers...)
			continue
		}
		records[n].Headers = headers
	}

	began := time.Now()
	err := i.producer.Produce(ctx, records...)
	i.metrics.produce.Observe(time.Since(began).Seconds())
	span.End(err)
	if errors.Is(err, kafka.ErrTopicLimit) {
		return topicLimitError(topic, records)
	}
	if err != nil {
		return fault.Unavailable(fmt.Errorf("producing %d records to %s: %w", len(records), topic, err), retryAfter,
			"Kafka did not acknowledge the body: none, some or all of its records may be stored; send it again")
	}

	size := 0
	for n := range records {
		size += len(records[n].Value)
	}

	i.metrics.records.WithLabelValues(topic).Add(float64(len(records)))
	i.metrics.bytes.WithLabelValues(topic).Add(float64(size))
	return nil
}

// topicLimitError names the largest record: when a topic does not take one of the
// records, it does not take that one.
func topicLimitError(topic string, records []kafka.Record) error {
	largest := 0
	for n := range records {
		if len(records[n].Value) > len(records[largest].Value) {
			largest = n
		}
	}
	return fault.New(fault.KindTooLarge,
		"Record %d of the body has %d bytes, more than the topic %s takes; the records that it takes are stored",
		largest+1, len(records[largest].Value), topic)
}
