package normalizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/event/topics"
	"trunkline/internal/kafka"
	"trunkline/internal/panics"
	"trunkline/internal/tracing"
)

// Config holds the settings of the normalizer, and values that only tests change.
type Config struct {
	Settings
	Topics []string // raw topics to normalize; default all
	Group  string   // consumer group; default "trunkline-normalizer"
	// largest record that the normalized topics accept, including key and headers; default
	// topics.MaxRecordBytes
	MaxRecordBytes int
}

// Validate sets defaults and returns an error for an invalid topic or size.
func (c *Config) Validate() error {
	if c.Group == "" {
		c.Group = "trunkline-normalizer"
	}
	if len(c.Topics) == 0 {
		c.Topics = []string{event.TopicRaw, event.TopicCDRRaw}
	}

	for _, topic := range c.Topics {
		if _, ok := conversions[topic]; !ok {
			return fmt.Errorf("normalizer: %q is not a raw topic", topic)
		}
	}

	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = topics.MaxRecordBytes
	}
	if c.MaxRecordBytes < 1<<10 || c.MaxRecordBytes > topics.MaxRecordBytes {
		return fmt.Errorf("normalizer: max record bytes must be 1 KiB to %d", topics.MaxRecordBytes)
	}

	return nil
}

// Deps holds the dependencies of the normalizer.
type Deps struct {
	LogReader kafka.Log
	Producer  Producer
	Accounts  Accounts
	Tracer    *tracing.Tracer // nil disables tracing
}

// Accounts checks whether accounts exist.
type Accounts interface {
	// Exists is called for every record, so it must be fast for known accounts. Before
	// it returns false it queries the database, because the account may just have been
	// created. On fault.KindUnavailable the caller retries.
	Exists(ctx context.Context, id string) (bool, error)
}

// Normalizer normalizes the partitions that its consumer group assigns to it.
type Normalizer struct {
	cfg      Config
	deps     Deps
	accounts accountLog
	metrics  *metrics
	panics   *panics.Recoverer
	log      *slog.Logger
}

// New creates a Normalizer. It starts nothing; Run does.
func New(cfg Config, deps Deps, reg prometheus.Registerer, log *slog.Logger) (*Normalizer, error) {
	cfg.Topics = slices.Clone(cfg.Topics)
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if deps.LogReader == nil || deps.Producer == nil || deps.Accounts == nil {
		return nil, errors.New("normalizer: needs a log, a producer and accounts")
	}

	recoverer := panics.New(reg, log)
	recoverer.InitMetrics(panicInRecord)
	return &Normalizer{cfg: cfg, deps: deps, metrics: newMetrics(reg), panics: recoverer, log: log}, nil
}

// Run normalizes until ctx ends, then commits the processed offsets and returns nil.
func (n *Normalizer) Run(ctx context.Context) error {
	if err := n.deps.LogReader.Work(ctx, kafka.GroupConfig{Group: n.cfg.Group, Topics: n.cfg.Topics},
		n.runPartition); err != nil {
		return fmt.Errorf("normalizing: %w", err)
	}
	return nil
}

// Producer writes records, in order within each partition, and returns nil only if all
// of them are durable. It keeps no reference to them.
type Producer interface {
	// Produce writes the records and returns nil only if all of them are durable. It copies them at
	// once. If a record is larger than topics.MaxRecordBytes, it returns fault.KindTooLarge and
	// sends none. kafka.ErrTopicLimit means that the topic rejects at least one record, and that all
	// others are durable. Any other error means that at least one record is not known to be
	// durable; if it wraps kafka.ErrOutcomeUnknown, as after the end of ctx, some may have been written
	// all the same.
	Produce(ctx context.Context, records ...kafka.Record) error
	// ProduceWithOffsets is like Produce for records of one partition, and returns their
	// offsets.
	ProduceWithOffsets(ctx context.Context, records ...kafka.Record) (kafka.Appended, error)
}
