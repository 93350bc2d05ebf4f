package kafka

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	kafkago "github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"trunkline/internal/fault"
	"trunkline/internal/setting"
)

// Config has the settings of a Kafka cluster, and options set in code.
type Config struct {
	Settings
	// Dial is a custom dialer, used for the embedded broker.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Liveness detects dead members of consumer groups. If nil, only Kafka's session
	// timeout does.
	Liveness Liveness

	// HeartbeatInterval is the time between two heartbeats of a member of a consumer group,
	// within which it notices that the group rebalances; 0: 300 ms. At most a third of the
	// session timeout, 6 s.
	HeartbeatInterval time.Duration

	// WriteFault returns the reason for which an embedded broker rejects writes, nil
	// while it accepts them. Set only with an embedded broker.
	WriteFault func() error

	// Topics are the topics whose metrics exist from the start.
	Topics []string
}

const (
	dialTimeout = 5 * time.Second
	clientID    = "trunkline" // in the brokers' logs and quotas
)

// Validate checks the settings. It returns fault.KindInvalid if no broker is
// configured.
func (c *Config) Validate() error {
	if len(c.Brokers) == 0 {
		return fault.InvalidField("kafka.brokers", "invalid", "at least one broker address is needed")
	}
	return setting.Validate("kafka", c.Settings)
}

func (c *Config) dialFunc() func(context.Context, string, string) (net.Conn, error) {
	if c.Dial != nil {
		return c.Dial
	}
	d := &net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}
	return d.DialContext
}

// Cluster is a client of one Kafka cluster, real or embedded. It is safe for
// concurrent use.
type Cluster struct {
	cfg               Config
	seeds             net.Addr // the brokers of Settings
	transport         *kafkago.Transport
	endTransport      context.CancelFunc
	openedAt          time.Time       // what groups of this process do at intervals is counted from it
	dialer            *kafkago.Dialer // for consumer groups
	leaders           leaders
	fetchers          fetchers
	offsetLookups     brokerLookups[partitionQuery, int64]
	epochEnds         brokerLookups[partitionQuery, EpochEnd]
	clock             brokerClock
	lastMissingTopics atomic.Pointer[[]string] // when KeepTopics last looked; nil before
	metrics           *metrics
	log               *slog.Logger
}

// Open creates a client of Kafka without connecting: it returns no error if Kafka is
// unreachable, see Ping.
func Open(ctx context.Context, cfg Config, reg prometheus.Registerer, log *slog.Logger) (*Cluster, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}

	connections, err := newConnector(ctx, &cfg, log)
	if err != nil {
		return nil, err
	}

	// The connections outlive ctx: Close ends them, after it has closed the fetch sessions.
	life, endTransport := context.WithCancel(context.WithoutCancel(ctx))
	c := &Cluster{
		cfg:          cfg,
		seeds:        kafkago.TCP(cfg.Brokers...),
		endTransport: endTransport,
		openedAt:     time.Now(),
		transport: &kafkago.Transport{
			Dial:        connections.dial,
			DialTimeout: dialTimeout,
			// The transport only tracks brokers; leaders tracks partition leaders. An
			// empty list requests no topics.
			MetadataTopics: []string{},
			MetadataTTL:    10 * time.Second,
			ClientID:       clientID,
			// A request that was abandoned keeps its pool of connections from ending.
			Context: life,
		},
		dialer: &kafkago.Dialer{
			ClientID: clientID,
			DialFunc: connections.dial,
			Timeout:  dialTimeout,
		},
		metrics: newMetrics(reg, cfg.Topics),
		log:     log,
	}
	c.leaders.cluster = c
	c.leaders.batcher = newLookupBatcher(c.leaders.requestTopics)
	c.fetchers.cluster = c
	c.offsetLookups.send = c.requestOffsets
	c.epochEnds.send = c.requestEpochEnds

	return c, nil
}

// Close closes the connections, within about a second: it first closes the fetch
// sessions at the brokers. Producers, readers and groups must have ended before.
func (c *Cluster) Close() {
	ended := make(chan struct{})
	go func() {
		c.fetchers.sessions.Wait()
		close(ended)
	}()

	select {
	case <-ended:
	// A broker that does not answer must not hold up the end of the process: it drops the session by itself.
	case <-time.After(closeTimeout):
	}

	c.transport.CloseIdleConnections()
	c.endTransport()
}

// WriteFault returns the reason for which all writes fail until this process restarts,
// or nil. Only an embedded broker has such faults.
func (c *Cluster) WriteFault() error {
	if c.cfg.WriteFault == nil {
		return nil
	}
	return c.cfg.WriteFault()
}

// Ping returns nil if a broker answers and WriteFault returns nil.
func (c *Cluster) Ping(ctx context.Context) error {
	if err := c.WriteFault(); err != nil {
		return fault.Unavailable(err, retryAfter, "the embedded broker takes no writes")
	}
	_, err := c.requestMetadata(ctx, []string{})
	return asFault(err, "asking Kafka for its brokers")
}

// withPrefix returns the name that a topic or a group has in Kafka.
func (c *Cluster) withPrefix(base string) string { return c.cfg.TopicPrefix + base }

// newProducerID requests a producer id from any broker, for one partition's sequence
// of batches.
func (c *Cluster) newProducerID(ctx context.Context) (id int64, epoch int16, err error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionTimeoutMillis = initProducerIDVersion, 60*1000 // unused: no transaction
	res, err := c.request(ctx, "", req)
	if err != nil {
		return 0, 0, err
	}
	response := res.(*kmsg.InitProducerIDResponse)
	return response.ProducerID, response.ProducerEpoch, errorFromCode(response.ErrorCode)
}
