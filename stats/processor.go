package stats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/setting"
)

// Deps holds the dependencies of a processor.
type Deps struct {
	Log      Log
	Producer Producer
	Accounts Accounts
	Configs  *QueueConfigs
	Rebuilds Rebuilds // nil: no rebuilds
	Feeds    Feeds    // nil: no alerts of feeds
}

// Accounts checks whether accounts exist.
type Accounts interface {
	Exists(ctx context.Context, account string) (bool, error)
}

// Processor computes the figures of the partitions assigned by its consumer group.
// Several may run concurrently.
type Processor struct {
	rules    Rules
	deps     Deps
	rebuilds *rebuildRequests // nil: no rebuilds
	feeds    *feedWatch       // nil: none
	metrics  *metrics
	log      *slog.Logger
}

// New creates a processor. It starts nothing; Run does.
func New(settings Settings, deps Deps, reg prometheus.Registerer, log *slog.Logger) (*Processor, error) {
	if err := setting.Validate("stats", settings); err != nil {
		return nil, err
	}
	if deps.Log == nil || deps.Producer == nil || deps.Accounts == nil || deps.Configs == nil {
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
		p.feeds = &feedWatch{feeds: deps.Feeds, log: log}
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
	if err := p.deps.Log.Work(ctx, p.runPartition); err != nil {
		return fmt.Errorf("computing figures: %w", err)
	}
	return nil
}

// runPartition computes the figures of one partition until ctx ends or an unexpected
// error occurs; then the group restarts it.
func (p *Processor) runPartition(ctx context.Context, partition int, commit func(next int64)) error {
	oldest, done := p.metrics.lag.Track(partition)
	defer done()
	defer p.metrics.queues.drop(partition)
	for {
		w := &worker{partitionFold: p.newPartitionFold(partition), commit: commit, oldest: oldest}
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
