package stats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/setting"
)

// group is the consumer group of all processors.
const group = "trunkline-stats"

// Deps holds the dependencies of a processor.
type Deps struct {
	LogReader kafka.Log
	Producer  Producer
	Accounts  Accounts
	Configs   *QueueConfigs
	Rebuilds  Rebuilds // nil: no rebuilds
	Feeds     Feeds    // nil: no alerts of feeds
}

// Producer writes to cc.stats and cc.raw.
type Producer interface {
	// Produce writes records and returns when all of them are durable.
	Produce(ctx context.Context, records ...kafka.Record) error
	// ProduceWithOffsets writes the records of one partition as one record batch, and returns
	// their offsets when they are durable. It keeps no reference to them.
	ProduceWithOffsets(ctx context.Context, records ...kafka.Record) (kafka.Appended, error)
}

// Accounts checks whether accounts exist.
type Accounts interface {
	// Exists reports whether an account exists. After an error its messages and rows are written
	// all the same.
	Exists(ctx context.Context, account string) (bool, error)
}

// Processor computes the figures of the partitions assigned by its consumer group.
// Several may run concurrently.
type Processor struct {
	rules    Rules
	deps     Deps
	rebuilds *rebuildRequests // nil: no rebuilds
	feeds    *feedStatePoller // nil: none
	metrics  *metrics
	log      *slog.Logger
}

// New creates a processor. It starts nothing; Run does.
func New(settings Settings, deps Deps, reg prometheus.Registerer, log *slog.Logger) (*Processor, error) {
	if err := setting.Validate("stats", settings); err != nil {
		return nil, err
	}
	if deps.LogReader == nil || deps.Producer == nil || deps.Accounts == nil || deps.Configs == nil {
		return nil, errors.New("stats: needs a log, a producer, accounts and the configurations of queues")
	}

	rules := Rules{Interval: settings.Interval, Late: settings.LateEvents, MaxRows: settings.MaxRows,
		Thresholds: deps.Configs.thresholdsAt, Alerts: deps.Configs}
	p := &Processor{rules: rules, deps: deps, metrics: newMetrics(reg, newQueueMetrics(settings.MaxLabelSets, log)),
		log: log}

	if deps.Rebuilds != nil {
		p.rebuilds = &rebuildRequests{store: deps.Rebuilds, log: log}
	}
	if deps.Feeds != nil {
		p.feeds = &feedStatePoller{feeds: deps.Feeds, log: log}
	}

	return p, nil
}

// Run computes figures until ctx ends, then returns nil.
func (p *Processor) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()

	ending, stop := context.WithCancel(ctx)
	defer stop()

	if p.rebuilds != nil {
		watching.Go(func() { p.rebuilds.run(ending) })
	}
	if p.feeds != nil {
		watching.Go(func() { p.feeds.run(ending) })
	}
	if err := p.deps.LogReader.Work(ctx, kafka.GroupConfig{Group: group, Topics: []string{event.TopicEvents}},
		p.runPartition); err != nil {
		return fmt.Errorf("computing figures: %w", err)
	}

	return nil
}

// runPartition computes the figures of one partition until ctx ends or an unexpected
// error occurs; then the group restarts it.
func (p *Processor) runPartition(ctx context.Context, assigned kafka.Assigned) error {
	partition := assigned.Partition
	oldest, done := p.metrics.lag.Track(partition)
	defer done()
	defer p.metrics.queues.drop(partition)

	for {
		w := &partitionWorker{partitionFold: p.newPartitionFold(partition), commit: assigned.Commit, oldest: oldest}
		err := w.process(ctx)
		w.countEntries(false)

		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errBehind):
			p.log.Info("partition's figures computed by another process", "partition", partition)
		default:
			return fmt.Errorf("figures of partition %d: %w", partition, err)
		}
	}
}
