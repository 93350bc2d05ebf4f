package origination

import (
	"errors"
	"time"
)

// Config is the configuration of a Service. Zero fields take their defaults.
type Config struct {
	// Node is the unique name of this process; it is never reused.
	Node string
	// Alone means that no other process places calls with this database: its open calls are from an
	// earlier run of this process.
	Alone bool
	// Rules restrict the destinations that may be dialled; nil allows all.
	Rules *Rules
	// PerMinute limits the calls that a user may place in a minute; 0: no limit.
	PerMinute int
	// MaxCalls limits the open calls of this process; orders above it get 503. Default 10,000.
	MaxCalls int
	// Retention is how long ended calls are kept. Default 30 days.
	Retention time.Duration
	// PlaceTimeout is how long the platform may take to accept an order. Default 10 s.
	PlaceTimeout time.Duration
	// Lease is how long a node keeps its calls without renewing its lease. Default 10 s.
	Lease time.Duration
}

func (c Config) withDefaults() Config {
	if c.Rules == nil {
		c.Rules = &Rules{}
	}
	if c.MaxCalls == 0 {
		c.MaxCalls = 10_000
	}
	if c.Retention == 0 {
		c.Retention = 30 * 24 * time.Hour
	}
	if c.PlaceTimeout == 0 {
		c.PlaceTimeout = 10 * time.Second
	}
	if c.Lease == 0 {
		c.Lease = 10 * time.Second
	}
	return c
}

// Validate checks c.
func (c Config) Validate() error {
	switch {
	case c.Node == "":
		return errors.New("origination: the node has no name")
	case c.PerMinute < 0 || c.MaxCalls < 0:
		return errors.New("origination: a limit is negative")
	case c.Retention < 0 || c.PlaceTimeout < 0 || c.Lease < 0:
		return errors.New("origination: a duration is negative")
	}
	return nil
}
