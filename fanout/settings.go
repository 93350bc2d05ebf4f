package fanout

import (
	"time"

	"trunkline/internal/setting"
)

// Settings holds the settings of the event channel.
type Settings struct {
	PingInterval             time.Duration `yaml:"ping_interval" doc:"time between pings to a subscriber"`
	IdleTimeout              time.Duration `yaml:"idle_timeout" doc:"a connection silent for this long is closed"`
	QueueBytes               setting.Bytes `yaml:"queue_bytes" doc:"bytes of memory that the queue of one subscriber may keep, then it is closed with 4008"`
	NodeQueueBytes           setting.Bytes `yaml:"node_queue_bytes" doc:"bytes of memory that all queues of a node may keep, then the subscribers with the longest are closed with 4008"`
	RingBytes                setting.Bytes `yaml:"ring_bytes" doc:"recent events kept in memory for resumes, all partitions together"`
	GatherWindow             time.Duration `yaml:"gather_window" doc:"how long events wait so that one write carries several; 0: they do not"`
	Compression              bool          `yaml:"compression" doc:"offer permessage-deflate"`
	MaxConnectionsPerAccount int           `yaml:"max_connections_per_account" doc:"open connections of one account in the cluster; 0: no limit"`
	MaxConnectionsPerUser    int           `yaml:"max_connections_per_user" doc:"open connections of one user in the cluster; 0: no limit"`
	MaxConnectionsPerAddress int           `yaml:"max_connections_per_address" doc:"open connections from one IPv4 address or IPv6 /64 in the cluster, twice as many from a /56; 0: no limit"`
	OnLimit                  string        `yaml:"on_limit" doc:"over a limit: refuse the new connection, or replace the oldest"`
	SnapshotBytes            setting.Bytes `yaml:"snapshot_bytes" doc:"bytes of memory for the state of all accounts while snapshots are made; if the state needs more, snapshots are refused with 503"`
	RebalanceTime            time.Duration `yaml:"rebalance_time" doc:"after a node was added, time over which nodes with more than their share of the connections disconnect the excess; 0: they do not"`
	DrainSpread              time.Duration `yaml:"drain_spread" doc:"time over which a shutdown disconnects subscribers"`
}

// Values of OnLimit.
const (
	refuseNewest  = "refuse"
	replaceOldest = "replace"
)

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{
		PingInterval:             25 * time.Second,
		IdleTimeout:              60 * time.Second,
		QueueBytes:               1 << 20,
		NodeQueueBytes:           1 << 30,
		RingBytes:                64 << 20,
		MaxConnectionsPerAccount: 20_000,
		MaxConnectionsPerUser:    200,
		MaxConnectionsPerAddress: 2000,
		OnLimit:                  refuseNewest,
		SnapshotBytes:            256 << 20,
		DrainSpread:              5 * time.Second,
	}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.Positive("ping_interval", s.PingInterval)
	c.Must(s.IdleTimeout > s.PingInterval, "idle_timeout", "must be longer than %s (%s), is %s",
		c.Key("ping_interval"), s.PingInterval, s.IdleTimeout)
	c.Must(s.QueueBytes >= 4<<10, "queue_bytes", "must be at least 4KiB, is %s", s.QueueBytes)
	c.Must(s.RingBytes >= 0, "ring_bytes", "must not be negative, is %s", s.RingBytes)
	c.Must(s.SnapshotBytes >= 1<<20, "snapshot_bytes", "must be at least 1MiB, is %s", s.SnapshotBytes)
	c.Must(s.NodeQueueBytes >= s.QueueBytes, "node_queue_bytes", "must not be less than %s (%s), is %s",
		c.Key("queue_bytes"), s.QueueBytes, s.NodeQueueBytes)
	c.Must(s.GatherWindow >= 0 && s.GatherWindow <= time.Second, "gather_window",
		"must be 0 to 1s, is %s", s.GatherWindow)
	c.NotNegative("max_connections_per_account", s.MaxConnectionsPerAccount)
	c.NotNegative("max_connections_per_user", s.MaxConnectionsPerUser)
	c.NotNegative("max_connections_per_address", s.MaxConnectionsPerAddress)
	c.OneOf("on_limit", s.OnLimit, refuseNewest, replaceOldest)
	c.Must(s.RebalanceTime == 0 || s.RebalanceTime >= time.Second, "rebalance_time", "must be 0 or at least 1s, is %s",
		s.RebalanceTime)
	c.Must(s.DrainSpread >= 0, "drain_spread", "must not be negative, is %s", s.DrainSpread)
}
