package fanout

import (
	"errors"
	"time"
)

// Config holds the settings; zero values take the defaults beside them.
type Config struct {
	NodeID          string        // unique among the nodes; required
	QueueBytes      int           // memory of one subscriber's queue; beyond it, 4008 (1 MiB)
	NodeQueueBytes  int64         // memory of all queues; beyond it, the longest get 4008 (1 GiB)
	RingBytes       int64         // recent history in memory, all partitions together (64 MiB)
	GatherWindow    time.Duration // hold frames back up to this long to write more at once (0)
	PingInterval    time.Duration // 25 s
	IdleTimeout     time.Duration // a peer silent this long is closed (60 s)
	HandshakeWait   time.Duration // for Kafka look-ups before an upgrade (5 s)
	DrainSpread     time.Duration // closing on shutdown is spread over this long (5 s)
	Compression     bool          // offer permessage-deflate
	AllowedOrigins  []string      // empty: the request's own origin
	MaxPerAccount   int           // open connections in the cluster; 0: no limit
	MaxPerUser      int
	MaxPerAddress   int
	ReplaceOldest   bool          // at a limit, close the oldest with 4009 instead of refusing the newest
	HistoryBytes    int64         // older history in memory while anybody replays it (64 MiB)
	StreamLinger    time.Duration // streams stop this long after the last subscriber left (30 s)
	SnapshotBytes   int64         // memory for what snapshots show, all partitions together (256 MiB)
	SnapshotHistory time.Duration // how far back snapshots look (24 h); negative: there are none
}

func (c Config) withDefaults() Config {
	def(&c.QueueBytes, 1<<20)
	def(&c.NodeQueueBytes, 1<<30)
	def(&c.RingBytes, 64<<20)
	def(&c.PingInterval, 25*time.Second)
	def(&c.IdleTimeout, 60*time.Second)
	def(&c.HandshakeWait, 5*time.Second)
	def(&c.DrainSpread, 5*time.Second)
	def(&c.HistoryBytes, 64<<20)
	def(&c.StreamLinger, 30*time.Second)
	def(&c.SnapshotHistory, 24*time.Hour)
	def(&c.SnapshotBytes, 256<<20)
	return c
}

func def[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

// Validate returns an error for settings that cannot work.
func (c Config) Validate() error {
	switch {
	case c.NodeID == "":
		return errors.New("fanout: NodeID is required")
	case c.QueueBytes < 4096:
		return errors.New("fanout.queue_bytes: want at least 4096")
	case c.RingBytes < 0 || c.NodeQueueBytes < int64(c.QueueBytes):
		return errors.New("fanout.ring_bytes, fanout.node_queue_bytes: too small")
	case c.SnapshotBytes < 1<<20:
		return errors.New("fanout.snapshot_bytes: want at least 1 MiB")
	case c.GatherWindow < 0 || c.GatherWindow > time.Second:
		return errors.New("fanout.gather_window: want 0 to 1s")
	case c.PingInterval <= 0 || c.IdleTimeout <= c.PingInterval:
		return errors.New("fanout.idle_timeout: want more than fanout.ping_interval, which is above 0")
	}
	return nil
}
