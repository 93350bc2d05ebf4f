package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"

	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/setting"
)

// Address is the address to configure for the broker. Dial ignores it.
const Address = "embedded:9092"

// Config configures an embedded broker.
type Config struct {
	Dir       string        // exclusive to the broker; created if missing
	MaxBytes  int64         // size of Dir with all its files; default 512 MiB
	ListenTCP string        // loopback host:port for tools such as kcat; empty: none
	TrimEvery time.Duration // while records are written slowly; default 10 s

	Metrics prometheus.Registerer // nil: none
}

const (
	defaultTrimEvery = 10 * time.Second
	closeTimeout     = 10 * time.Second
	socketName       = "broker.sock"
	lockName         = "broker.lock"

	hundredYearsMillis = "3153600000000"
)

// Validate checks the configuration.
func (c *Config) Validate() error {
	if c.Dir == "" {
		return fault.InvalidField("data_dir", "required", "the embedded broker needs a directory")
	}
	if c.MaxBytes < 0 || c.TrimEvery < 0 {
		return fault.Invalid("the embedded broker's limits cannot be negative")
	}
	if c.ListenTCP == "" {
		return nil
	}

	set := DefaultSettings()
	set.Listen = c.ListenTCP
	if err := setting.Validate("kafka", set); err != nil {
		return fault.InvalidField("kafka.embedded_listen", "invalid", err.Error())
	}

	return nil
}

// segmentBytes returns the size of a file of the log. A file is deleted with its last
// record, so each partition may have one more than it needs.
func (c *Config) segmentBytes() int64 { return min(max(c.MaxBytes/512, 64<<10), 1<<20) }

// journalBytes returns the size of one of the journal's two files.
func (c *Config) journalBytes() int64 { return min(max(c.MaxBytes/32, 64<<10), maxJournalBytes) }

// Broker is a running embedded broker.
type Broker struct {
	cfg            Config
	cluster        *kfake.Cluster
	client         *kafka.Cluster // for the broker's own writes, also to paused partitions
	durability     *durability
	listener       *pipeListener
	lock           *os.File
	metrics        *metrics
	log            *slog.Logger
	cancel         context.CancelFunc
	background     sync.WaitGroup        // the trimmer and the compactor
	producedBytes  atomic.Int64          // bytes of produce requests since the last trimming
	trimSoon       chan struct{}         // signals that producedBytes is large
	compactSoon    chan []partition      // the partitions of compacted topics, to look at
	compactedBytes map[partitionID]int64 // left by the last compaction; of the compactor
}

// Open starts the broker on its directory. All acknowledged records are still there,
// even after a kill.
func Open(cfg Config, log *slog.Logger) (*Broker, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = int64(DefaultSettings().MaxBytes)
	}
	if cfg.TrimEvery == 0 {
		cfg.TrimEvery = defaultTrimEvery
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the broker's directory: %w", err)
	}

	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}

	b := &Broker{
		cfg: cfg, lock: lock, metrics: newMetrics(cfg.Metrics), log: log,
		compactedBytes: map[partitionID]int64{},
		trimSoon:       make(chan struct{}, 1), compactSoon: make(chan []partition, 1),
	}
	b.durability = newDurability(b.logDir(), b.metrics, log)

	if err := b.start(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}

	ctx, cancel := context.WithCancel(context.Background())
	b.cancel = cancel
	b.client, err = kafka.Open(ctx, kafka.Config{Settings: kafka.DefaultSettings(Address), Dial: b.dialInternal}, nil,
		log)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}

	// Before Open returns, so that no record is written under an epoch that the log had before.
	if err := b.raiseEpochs(ctx); err != nil {
		return nil, errors.Join(err, b.Close())
	}

	b.background.Go(func() { b.runTrimmer(ctx) })
	b.background.Go(func() { b.runCompactor(ctx) })
	return b, nil
}

func (b *Broker) logDir() string { return filepath.Join(b.cfg.Dir, "log") }

func (b *Broker) start() error {
	// A killed process may have left unsynced batches, which become readable now.
	if err := b.durability.recover(b.cfg.Dir, b.cfg.journalBytes()); err != nil {
		return err
	}

	err := b.openAndRepair(b.openOnce)
	if err == nil {
		err = b.removeDeletedTopics()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("starting the embedded broker: %w", err), b.durability.journal.close())
	}

	return nil
}

// removeDeletedTopics removes the directories of partitions without a topic: a crash while a
// topic was deleted leaves them, and a new topic of that name would begin with their records.
func (b *Broker) removeDeletedTopics() error {
	dir := filepath.Join(b.logDir(), partitionsName)
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		topic, _ := parsePartitionDir(entry.Name())
		if b.cluster.TopicInfo(topic) == nil {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// openOnce opens the listener and the log.
func (b *Broker) openOnce() error {
	listener, err := openListener(b.cfg.Dir, b.cfg.ListenTCP, b)
	if err != nil {
		return err
	}

	b.listener = listener
	b.cluster, err = kfake.NewCluster(
		kfake.NumBrokers(1),
		kfake.ClusterID("trunkline-embedded"),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return listener, nil }),
		kfake.DataDir(b.logDir()),
		kfake.WithLogger(logger{b.log}),
		kfake.BrokerConfigs(map[string]string{
			"log.segment.bytes": strconv.FormatInt(b.cfg.segmentBytes(), 10),
			"log.retention.ms":  "-1", // kfake's trimming loses offsets
			// A kill during kfake's compaction loses data: never run it.
			"log.cleaner.backoff.ms": hundredYearsMillis,
		}),
	)
	if err != nil {
		return errors.Join(err, listener.Close())
	}

	return nil
}

// Dial connects to the broker; use it as kafka.Config.Dial.
func (b *Broker) Dial(ctx context.Context, _, _ string) (net.Conn, error) {
	return b.listener.dialInProcess(ctx)
}

// TCPAddr returns the TCP address for tools, nil if the broker has none.
func (b *Broker) TCPAddr() net.Addr { return b.listener.boundAddr() }

// Err returns the reason for which the broker rejects writes, nil while it accepts
// them. After such an error it accepts writes again only after a restart.
func (b *Broker) Err() error { return b.durability.rejectionError() }

// Close writes buffered records to disk and releases the directory.
func (b *Broker) Close() error {
	b.cancel()
	// First, since the trimmer and the compactor use the client and the cluster.
	b.background.Wait()
	if b.client != nil {
		b.client.Close()
	}

	closed := make(chan struct{})
	go func() {
		b.cluster.Close()
		close(closed)
	}()

	var err error
	select {
	case <-closed:
		err = b.durability.close()
	case <-time.After(closeTimeout): // nothing is lost: the log is synced
		err = errors.New("the embedded broker did not stop in time")
	}

	// The lock goes last: another process may open the directory as soon as it is free.
	return errors.Join(err, b.listener.Close(), b.lock.Close())
}

// logger forwards kfake's log messages.
type logger struct{ log *slog.Logger }

func (l logger) Logf(level kfake.LogLevel, format string, args ...any) {
	slogLevel := slog.LevelDebug
	switch level {
	case kfake.LogLevelError:
		slogLevel = slog.LevelError
	case kfake.LogLevelWarn:
		slogLevel = slog.LevelWarn
	}

	if l.log.Enabled(context.Background(), slogLevel) {
		l.log.Log(context.Background(), slogLevel, "embedded broker", "says", fmt.Sprintf(format, args...))
	}
}
