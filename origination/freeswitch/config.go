package freeswitch

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/esl"
)

// What the owner's phone shows.
const (
	ownerCallerID   = "{destination}"
	ownerCallerName = "Click to call"
)

// Config has the settings, and what tests set: there zero is the default.
type Config struct {
	Settings
	MaxCalls int // largest number of unfinished calls

	CommandTimeout time.Duration // limit for the reply to a command
	ReconnectMin   time.Duration // first pause before reconnecting
	ReconnectMax   time.Duration // longest pause before reconnecting
	AuditEvery     time.Duration // interval of comparisons with the switch's channels
	GoneAfter      time.Duration // time without a channel after which a call has ended
}

const (
	dialTimeout  = 5 * time.Second // limit for connecting and logging in
	queueTimeout = 8 * time.Second // longest wait of a call when the switch limits sessions per second
)

func (c Config) withDefaults() Config {
	c.MaxCalls = cmp.Or(c.MaxCalls, 4000)
	c.CommandTimeout = cmp.Or(c.CommandTimeout, 5*time.Second)
	c.ReconnectMin = cmp.Or(c.ReconnectMin, 250*time.Millisecond)
	c.ReconnectMax = cmp.Or(c.ReconnectMax, 15*time.Second)
	c.AuditEvery = cmp.Or(c.AuditEvery, 15*time.Second)
	c.GoneAfter = cmp.Or(c.GoneAfter, 5*time.Second)
	return c
}

func (c Config) socket() esl.Config {
	return esl.Config{
		Address: c.Address, User: c.User, Password: string(c.Password),
		DialTimeout: dialTimeout, CommandTimeout: c.CommandTimeout,
	}
}

// Deps has the dependencies of a Driver.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
