package origination

import (
	"errors"
	"time"
)

// Config are the room's settings. Zero fields take their defaults.
type Config struct {
	// Node names this process among all there ever were.
	Node string
	// Alone: no other process places calls with this database, so whatever is
	// open in it is what an earlier life of this one left.
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
	// Lease is how long after its last sign of life a node's calls are taken
	// over. 10 s when zero.
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

// Validate says what cannot work.
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
