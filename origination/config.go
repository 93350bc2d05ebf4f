package origination

import (
	"errors"
	"time"
)

// Config is the configuration of a Service. Zero fields take their defaults.
type Config struct {
	// Node is the name of this process, unique among all that ever ran.
	Node string
	// Alone means that no other process places calls with this database: its open
	// calls were left by an earlier run of this one.
	Alone bool
	// Rules say which destinations may be dialled; nil: all.
	Rules *Rules
	// PerMinute is how many calls a user may place in a minute; 0: no limit.
	PerMinute int
	// MaxCalls bounds the open calls of this process, then 503. 10,000 when zero.
	MaxCalls int
	// Retention is how long ended calls are kept. 30 days when zero.
	Retention time.Duration
	// PlaceTimeout is how long the platform may take to accept. 10 s when zero.
	PlaceTimeout time.Duration
	// Lease is how long a node has its calls without renewing its lease. 10 s when
	// zero.
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

// Validate returns what is wrong with the configuration.
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
