package feed

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/kafka"
	"trunkline/internal/panics"
	"trunkline/internal/tracing"
)

// ServiceConfig holds the configuration of a Service.
type ServiceConfig struct {
	Settings
	Feeds   []Config
	DataDir string // its folder feeds has the spools
	Node    string // the name of this process, unique in the cluster
}

// ServiceDeps holds the dependencies of a Service.
type ServiceDeps struct {
	Store     *Store
	Directory Directory
	Platform  Constructor // of the platform of each feed, by its kind
	Producer  Producer
	LogReader Log             // of the topics that a resync reads
	Tracer    *tracing.Tracer // nil disables tracing
	Metrics   prometheus.Registerer
	Log       *slog.Logger
}

// Log reads topics. *kafka.Cluster implements it.
type Log interface {
	// Partitions returns the number of partitions of a topic. It is not cached.
	Partitions(ctx context.Context, topic string) (int, error)
	// Offsets returns the first offset of a partition and the offset of its next record.
	Offsets(ctx context.Context, topic string, partition int) (first, next int64, err error)
	// ScanCompacted calls each for the records of a partition of a compacted topic, in order, from
	// offset from to its end, and returns the offset of the end. It skips damaged records. It calls
	// reset before the first record, and before each restart of the scan: if the log was compacted
	// during the scan, unread records may have moved beyond the end. A record is valid during its
	// call only.
	ScanCompacted(ctx context.Context, topic string, partition int, from int64, reset func(),
		each func(*kafka.Record)) (end int64, err error)
}

// Service runs the feeds of a node.
type Service struct {
	runners []*runner
}

// NewService opens the spools and creates the platforms. It opens no
// connection.
func NewService(cfg ServiceConfig, deps ServiceDeps) (_ *Service, err error) {
	metrics, recoverer := newMetrics(deps.Metrics), panics.New(deps.Metrics, deps.Log)
	recoverer.InitMetrics(panicPlace)
	s := &Service{}

	for _, feedConfig := range cfg.Feeds {
		r, err := newRunner(feedConfig, cfg, deps, metrics.forFeed(feedConfig), recoverer)
		if err != nil {
			return nil, fmt.Errorf("feed %s: %w", feedConfig.Name, err)
		}
		s.runners = append(s.runners, r)
	}

	return s, nil
}

func newRunner(feedConfig Config, cfg ServiceConfig, deps ServiceDeps, metrics feedMetrics,
	recoverer *panics.Recoverer) (*runner, error) {
	logger := deps.Log.With("feed", feedConfig.Name)
	accounts := NewAccounts(feedConfig, deps.Directory)
	platform, err := deps.Platform(feedConfig, Deps{
		Accounts: accounts, Metrics: deps.Metrics, Log: logger, Panics: recoverer,
	})
	if err != nil {
		return nil, err
	}

	out := &kafkaOutput{producer: deps.Producer, tracer: deps.Tracer, log: logger,
		onDropped: func(records int) { metrics.dropped.add(uint64(records)) }}
	r := &runner{
		cfg: feedConfig, node: cfg.Node, platform: platform, accounts: accounts, store: deps.Store, log: logger,
		kafka: deps.LogReader, output: out,
		metrics: metrics, recoverer: recoverer,
		ownRun: newRun(), leaseTime: leaseTime, orderTimeout: orderTimeout, resyncInterval: resyncInterval,
		resyncRequests: make(chan struct{}, 1), heldSignal: make(chan struct{}, 1), warnedNames: map[string]bool{},
		leaseSlot: -1,
	}
	dir := filepath.Join(cfg.DataDir, "feeds", feedConfig.Name)
	r.spool, err = openSpool(dir, cfg.SpoolBytes, r.countSpoolLoss, logger)
	if err != nil {
		return nil, err
	}

	r.sender = newSender(r.spool, out)
	r.setState(StateStandby, nil)
	return r, nil
}

// Run runs the feeds until ctx ends. Unsent records stay in the spools, and the next process sends
// them.
func (s *Service) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, r := range s.runners {
		running.Go(func() { r.runUntil(ctx) })
	}
	running.Wait()
	return nil
}
