package asterisk

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/ami"
)

// ownerCallerName is the name that the owner's phone shows. The number is the destination.
const ownerCallerName = "Click to call"

// Config has the settings, and what tests set: there zero is the default.
type Config struct {
	Settings
	MaxCalls int // largest number of unfinished calls

	ActionTimeout time.Duration // limit for the response to an action
	ReconnectMin  time.Duration // first pause before reconnecting
	ReconnectMax  time.Duration // longest pause before reconnecting
	AuditEvery    time.Duration // interval of comparisons with Asterisk's channels
	GoneAfter     time.Duration // time without a channel after which a call has ended
}

const dialTimeout = 5 * time.Second // limit for connecting and logging in

func (c Config) withDefaults() Config {
	c.MaxCalls = cmp.Or(c.MaxCalls, 4000)
	c.ActionTimeout = cmp.Or(c.ActionTimeout, 5*time.Second)
	c.ReconnectMin = cmp.Or(c.ReconnectMin, 250*time.Millisecond)
	c.ReconnectMax = cmp.Or(c.ReconnectMax, 15*time.Second)
	c.AuditEvery = cmp.Or(c.AuditEvery, 15*time.Second)
	c.GoneAfter = cmp.Or(c.GoneAfter, 5*time.Second)
	return c
}

func (c Config) manager() (ami.Config, error) {
	secured, err := c.TLS.Load()
	if err != nil {
		return ami.Config{}, fmt.Errorf("origination.asterisk: %w", err)
	}
	return ami.Config{
		Address: c.Address, TLS: secured, Username: c.Username, Secret: string(c.Secret), Events: "call",
		DialTimeout: dialTimeout, ActionTimeout: c.ActionTimeout,
	}, nil
}

// Deps has the dependencies of a Driver.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
