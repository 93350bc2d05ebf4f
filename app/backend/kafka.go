package backend

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/event/topics"
	"trunkline/internal/fault"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/credentials"
	"trunkline/internal/kafka/embedded"
	"trunkline/internal/retry"
	"trunkline/internal/tlsclient"
	"trunkline/settings"
)

// OpenKafka opens the configured Kafka, or an embedded broker on the data directory, which
// then belongs to this process alone. liveness may be nil. close ends both.
func OpenKafka(ctx context.Context, s *settings.Settings, liveness kafka.Liveness, reg prometheus.Registerer,
	log *slog.Logger) (
	cluster *kafka.Cluster, close func() error, err error) {
	if len(s.Kafka.Brokers) > 0 {
		return configuredKafka(ctx, s, liveness, reg, log)
	}

	broker, err := openBroker(s, reg, log)
	if err != nil {
		return nil, nil, err
	}

	cfg := embeddedConfig(s, broker.Dial)
	cfg.WriteFault = broker.Err
	cluster, err = kafka.Open(ctx, cfg, reg, log)
	if err != nil {
		return nil, nil, errors.Join(err, broker.Close())
	}

	return cluster, func() error {
		cluster.Close()
		return broker.Close()
	}, nil
}

// TopicSpecs returns the topics for the settings.
func TopicSpecs(s *settings.Settings) []topics.Spec {
	specs := topics.All(s.Kafka.Partitions)
	if s.Audit.Topic {
		specs = append(specs, topics.Audit())
	}
	return specs
}

// OpenSharedKafka opens Kafka for a command that may run while a server runs: if the broker is
// embedded and a server runs on the data directory, the command uses the server's broker.
func OpenSharedKafka(ctx context.Context, s *settings.Settings, log *slog.Logger) (
	cluster *kafka.Cluster, close func() error, err error) {
	reg := prometheus.NewRegistry()
	cluster, close, err = OpenKafka(ctx, s, nil, reg, log)
	if fault.KindOf(err) != fault.KindConflict { // no other process uses the directory
		return cluster, close, err
	}

	cluster, err = kafka.Open(ctx, embeddedConfig(s, embedded.DialSocket(brokerDir(s))), reg, log)
	if err != nil {
		return nil, nil, err
	}

	if err := awaitBroker(ctx, cluster); err != nil {
		cluster.Close()
		return nil, nil, err
	}

	return cluster, func() error {
		cluster.Close()
		return nil
	}, nil
}

// OpenExistingKafka does as OpenSharedKafka, for commands that must not create the files of a broker.
func OpenExistingKafka(ctx context.Context, s *settings.Settings, log *slog.Logger) (
	cluster *kafka.Cluster, close func() error, err error) {
	if !KafkaExists(s) {
		return nil, nil, noDataError(s, "broker")
	}
	return OpenSharedKafka(ctx, s, log)
}

// KafkaExists reports whether OpenExistingKafka has a Kafka to open: brokers are configured, or the data
// directory has the files of an embedded one.
func KafkaExists(s *settings.Settings) bool { return len(s.Kafka.Brokers) > 0 || exists(brokerDir(s)) }

// awaitBroker waits for a server that has just locked the directory to open its socket.
func awaitBroker(ctx context.Context, cluster *kafka.Cluster) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()

	backoff := retry.Backoff{First: 50 * time.Millisecond, Max: 500 * time.Millisecond}
	for {
		err := cluster.Ping(ctx)
		if err == nil {
			return nil
		}

		if !backoff.Wait(ctx) {
			return err
		}
	}
}

func configuredKafka(ctx context.Context, s *settings.Settings, liveness kafka.Liveness, reg prometheus.Registerer,
	log *slog.Logger) (
	*kafka.Cluster, func() error, error) {
	cluster, err := kafka.Open(ctx,
		kafka.Config{Settings: s.Kafka.Settings, Liveness: liveness, Topics: topics.Names()}, reg, log)
	if err != nil {
		return nil, nil, err
	}

	log.Info("kafka", "brokers", strings.Join(s.Kafka.Brokers, ","), "tls", s.Kafka.TLS.Enabled,
		"sasl", s.Kafka.SASL.Mechanism)
	return cluster, func() error {
		cluster.Close()
		return nil
	}, nil
}

func brokerDir(s *settings.Settings) string { return filepath.Join(s.DataDir, "broker") }

func openBroker(s *settings.Settings, reg prometheus.Registerer, log *slog.Logger) (*embedded.Broker, error) {
	broker, err := embedded.Open(embedded.Config{
		Dir: brokerDir(s), MaxBytes: int64(s.Kafka.Embedded.MaxBytes), ListenTCP: s.Kafka.Embedded.Listen,
		Metrics: reg,
	}, log)
	if err != nil {
		return nil, err
	}

	log.Info("embedded broker: one node, not replicated", "dir", brokerDir(s), "max", s.Kafka.Embedded.MaxBytes)
	address := broker.TCPAddr()
	if address != nil {
		log.Info("embedded broker: accessible to every user of this machine", "address", address)
	}

	return broker, nil
}

// embeddedHeartbeat is rare: each group has one member, that of this process, so that nobody
// waits for it to notice a rebalance.
const embeddedHeartbeat = 2 * time.Second

func embeddedConfig(s *settings.Settings, dial func(context.Context, string, string) (net.Conn, error)) kafka.Config {
	cluster := s.Kafka.Settings
	cluster.Brokers, cluster.ReplicationFactor = []string{embedded.Address}, 1
	// These settings are for kafka.brokers, which are not set here.
	cluster.Compression, cluster.TLS, cluster.SASL = "none", tlsclient.Settings{}, credentials.Settings{}
	return kafka.Config{
		Settings: cluster, Dial: dial, Topics: topics.Names(),
		HeartbeatInterval: embeddedHeartbeat,
	}
}
