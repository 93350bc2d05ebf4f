package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event"
	"trunkline/internal/consume"
	"trunkline/internal/kafka"
	"trunkline/internal/retry"
)

// consumerGroup is the consumer group of all nodes that deliver.
const consumerGroup = "trunkline-webhook"

// maxConcurrentScans is the maximum number of backlogs of a node that read from Kafka at a time.
const maxConcurrentScans = 8

// Deliverer sends events to webhooks. Each node can run one: it delivers the events of the
// partitions that the consumer group assigns to it.
type Deliverer struct {
	settings  Settings
	service   *Service
	events    kafka.Log
	registry  *registry
	sender    *sender
	metrics   *metrics
	log       *slog.Logger
	scanSlots chan struct{} // semaphore of maxConcurrentScans
}

// DelivererConfig has the dependencies of a Deliverer.
type DelivererConfig struct {
	Accounts Accounts
}

// NewDeliverer returns a Deliverer that Run starts.
func NewDeliverer(s *Service, cfg DelivererConfig, reg prometheus.Registerer, log *slog.Logger) *Deliverer {
	m := newMetrics(reg)
	r := &registry{settings: s.settings, db: s.db, keys: s.keys, accounts: cfg.Accounts, metrics: m, log: log,
		revision: -1, changes: s.db.WatchChanges()}
	r.current.Store(newWebhookSnapshot(nil))
	return &Deliverer{settings: s.settings, service: s, events: s.events, registry: r, sender: s.newSender(),
		metrics: m, log: log, scanSlots: make(chan struct{}, maxConcurrentScans)}
}

// Run delivers events until ctx ends, then returns nil.
func (d *Deliverer) Run(ctx context.Context) error {
	var registryDone sync.WaitGroup
	defer d.sender.close()
	defer registryDone.Wait()

	registryCtx, cancelRegistry := context.WithCancel(ctx)
	defer cancelRegistry()

	registryDone.Go(func() { d.registry.run(registryCtx) })
	if err := d.events.Work(ctx, kafka.GroupConfig{Group: consumerGroup, Topics: []string{event.TopicEvents}},
		d.runPartition); err != nil {
		return fmt.Errorf("delivering webhooks: %w", err)
	}

	return nil
}

// runPartition delivers the events of one partition until ctx ends or an unexpected
// error occurs; then the group restarts it.
func (d *Deliverer) runPartition(ctx context.Context, assigned kafka.Assigned) error {
	partition := assigned.Partition
	w := &partitionWorker{Deliverer: d, partition: partition, commit: assigned.Commit}
	w.retry = retry.WhileUnavailable(func(action string, err error, wait time.Duration) {
		w.log.Warn("delivery of webhooks waits", "doing", action, "partition", partition, "wait", wait, "error", err)
	})

	for {
		err := w.run(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, consume.ErrMoved):
			d.log.Info("events of a partition delivered by another node", "partition", partition)
		case err != nil:
			return fmt.Errorf("delivering the events of partition %d: %w", partition, err)
		}
	}
}
