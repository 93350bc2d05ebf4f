package fanout

import (
	"cmp"
	"errors"
	"time"

	"trunkline/internal/setting"
)

const handshakeTimeout = 5 * time.Second // for Kafka look-ups before an upgrade

// Config holds the settings and the values set by package app.
type Config struct {
	Settings
	NodeID       string // unique among the nodes
	HistoryBytes int64  // bytes of older history kept in memory while replays run; 0: 64 MiB

	// StreamLinger is the time for which a partition is still followed after its last subscriber
	// has disconnected; 0: 30 s.
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
