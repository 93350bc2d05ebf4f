package ingest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/tracing"
)

// Producer is where records go; nil means that all of them are durable.
type Producer interface {
	Produce(ctx context.Context, records ...kafka.Record) error
}

// Formats is what the normalizer knows about the formats it takes.
type Formats struct {
	// Topic is the raw topic of a format; ok is false for a format that is not
	// taken over HTTP.
	Topic func(format string) (topic string, ok bool)
	// Account is the account that a record names, "" when it names none. An
	// error is the record's own fault, which the normalizer will find again.
	Account func(format string, record []byte) (string, error)
}

// Accounts says which accounts a caller's records may name: those of its tree.
type Accounts interface {
	MayName(caller *identity.Principal, accountID string) bool
}

// Deps is what ingest works with.
type Deps struct {
	Formats  Formats
	Accounts Accounts
	Producer Producer
	Tracer   *tracing.Tracer // nil: tracing is off
}

// Ingest takes bodies in. It is safe for concurrent use.
type Ingest struct {
	config    Config
	formats   Formats
	accounts  Accounts
	producer  Producer
	tracer    *tracing.Tracer
	log       *slog.Logger
	metrics   *metrics
	admission *admission
}

// New makes an Ingest.
func New(config Config, deps Deps, reg prometheus.Registerer, log *slog.Logger) (*Ingest, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	i := &Ingest{
		config:   config,
		formats:  deps.Formats,
		accounts: deps.Accounts,
		producer: deps.Producer,
		tracer:   deps.Tracer,
		log:      log,
		admission: &admission{
			limit: config.MaxInFlightBytes, maxBodies: config.MaxBodiesPerCaller, maxWaiting: config.ProduceTimeout,
			callers: make(map[string]*caller),
		},
	}
	var err error
	if i.metrics, err = newMetrics(reg, []string{event.TopicRaw, event.TopicCDRRaw}, i.admission.stats); err != nil {
		return nil, fmt.Errorf("registering ingest's metrics: %w", err)
	}
	return i, nil
}

// Request is one body as it came over HTTP. The headers are as they were sent,
// "" when absent.
type Request struct {
	Format          string
	ContentType     string
	ContentEncoding string
	ContentLength   int64 // -1 when unknown
	Body            io.Reader
	Caller          *identity.Principal
	Trace           string // traceparent; passed on when valid and tracing is off: else ctx has it
}

// Accept stores a body: after nil, Kafka has all its records, and n is how many.
// Any error but fault.KindUnavailable means that nothing of the body is stored.
func (i *Ingest) Accept(ctx context.Context, r Request) (n int, err error) {
	n, err = i.accept(ctx, r)
	result := accepted
	if err != nil {
		result = string(fault.KindOf(err))
		i.logOverload(ctx, r, err)
	}
	i.metrics.bodies.WithLabelValues(result).Inc()
	return n, err
}

// logOverload warns of a body that was refused because of others: sources that
// do not send again lose it. The API logs what Kafka refuses.
func (i *Ingest) logOverload(ctx context.Context, r Request, err error) {
	f := fault.As(err)
	if f.Kind == fault.KindLimited || f.Kind == fault.KindUnavailable && f.Cause == nil {
		held, waiting := i.admission.stats()
		i.log.WarnContext(ctx, "body refused", "kind", f.Kind, "source", sourceOf(r.Caller), "account", r.Caller.AccountID,
			"format", r.Format, "held_bytes", held, "waiting_bodies", waiting, "reason", f.Message)
	}
}

func (i *Ingest) accept(ctx context.Context, r Request) (int, error) {
	topic, ok := i.formats.Topic(r.Format)
	if !ok {
		return 0, fault.NotFound("Unknown format")
	}
	encoding, err := encodingOf(r.Format, r.ContentType)
	if err != nil {
		return 0, err
	}
	if r.ContentLength > MaxBody {
		return 0, errBodyTooLarge
	}
	began := time.Now()
	memory, err := i.admission.enter(ctx, sourceOf(r.Caller), reserveOf(r, encoding))
	i.metrics.wait.Observe(time.Since(began).Seconds())
	if err != nil {
		return 0, err
	}
	defer memory.end()

	body, err := readBody(r, memory)
	if err != nil {
		return 0, err
	}
	records, err := i.records(r, body, encoding, topic, memory)
	if err != nil {
		return 0, err
	}
	if err := i.produce(ctx, r, topic, records); err != nil {
		return 0, err
	}
	return len(records), nil
}

// reserveOf estimates the memory that a body needs: its buffer, the records
// decoded from it, and their list.
func reserveOf(r Request, encoding encoding) int64 {
	const list = 2 << 10
	switch {
	case r.ContentLength < 0:
		return list + 2*firstBuffer
	case encoding.copies:
		return list + 2*r.ContentLength
	default:
		return list + r.ContentLength
	}
}

// sourceOf names the caller in the source header, and in the callers' counts.
func sourceOf(caller *identity.Principal) string {
	if caller.IsKey() {
		return "apikey:" + caller.KeyID
	}
	return "user:" + caller.UserID
}

func (i *Ingest) produce(ctx context.Context, r Request, topic string, records []kafka.Record) error {
	if len(records) == 0 {
		return nil
	}
	ctx, span := i.tracer.Send(ctx, topic, len(records))
	headers := i.headersOf(ctx, r)
	for n := range records {
		records[n].Headers = headers
	}
	ctx, cancel := context.WithTimeout(ctx, i.config.ProduceTimeout)
	defer cancel()
	began := time.Now()
	err := i.producer.Produce(ctx, records...)
	i.metrics.produce.Observe(time.Since(began).Seconds())
	span.End(err)
	if err != nil {
		return fault.Unavailable(fmt.Errorf("producing %d records to %s: %w", len(records), topic, err), retryAfter,
			"Kafka did not acknowledge the body: none, some or all of it may be stored; send it again")
	}
	size := 0
	for n := range records {
		size += len(records[n].Value)
	}
	i.metrics.records.WithLabelValues(topic).Add(float64(len(records)))
	i.metrics.bytes.WithLabelValues(topic).Add(float64(size))
	return nil
}
