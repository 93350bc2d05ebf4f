package origination

import (
	"cmp"
	"errors"
	"time"

	"trunkline/internal/setting"
)

// Config is the configuration of a Service.
type Config struct {
	Settings
	// Node is the unique name of this process; it is never reused.
	Node string
	// SingleNode means that no other process places calls with this database: its open calls are from an
	// earlier run of this process.
	SingleNode bool
	// PlaceTimeout is the time that the platform may take to accept an order. Default 10 s.
	PlaceTimeout time.Duration
	// Lease is the time for which a node keeps its calls without renewing its lease. Default 10 s.
	Lease time.Duration
}

func (c Config) withDefaults() Config {
	c.PlaceTimeout = cmp.Or(c.PlaceTimeout, 10*time.Second)
	c.Lease = cmp.Or(c.Lease, 10*time.Second)
	return c
}

// Validate checks c.
func (c Config) Validate() error {
	if c.Node == "" {
		return errors.New("origination: the node has no name")
	}
	return setting.Validate("origination", c.Settings)
}
