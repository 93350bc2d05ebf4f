package fanout

import (
	"cmp"
	"errors"
	"time"

	"trunkline/internal/setting"
)

const handshakeWait = 5 * time.Second // for Kafka look-ups before an upgrade

// Config has the settings and what wiring knows.
type Config struct {
	Settings
	NodeID       string // unique among the nodes
	HistoryBytes int64  // older history in memory while anybody replays it; 0: 64 MiB

	// StreamLinger is how long a partition is followed after its last subscriber has
	// left; 0: 30 s.
	StreamLinger time.Duration
}

func (c Config) withDefaults() Config {
	c.HistoryBytes = cmp.Or(c.HistoryBytes, 64<<20)
	c.StreamLinger = cmp.Or(c.StreamLinger, 30*time.Second)
	return c
}

// Validate returns an error for a configuration that cannot work.
func (c Config) Validate() error {
	if c.NodeID == "" {
		return errors.New("fanout: NodeID is required")
	}
	return setting.Validate("fanout", c.Settings)
}
