package ami

import (
	"cmp"
	"crypto/tls"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/telephony/eventconn"
)

// Config has the address and the limits of one manager interface.
type Config struct {
	Address  string      // host:port; Asterisk listens on port 5038, with TLS on port 5039
	TLS      *tls.Config // nil uses plain TCP
	Username string
	Secret   string
	// Events is the event mask of the login: "on", "off", or classes such as "call,agent".
	Events string

	DialTimeout   time.Duration // limit for connecting and logging in
	ActionTimeout time.Duration // limit for a response, for the next event of a list, and for writing
	PingInterval  time.Duration // time without received data after which a ping is sent
	MaxMessage    int           // largest message in bytes
	MaxPending    int           // largest number of actions without a response
	MaxList       int           // largest memory of the response to a list action, in bytes
	QueueEvents   int           // largest number of events waiting for Take
	QueueBytes    int           // largest memory of the events waiting for Take, in bytes
}

// WithDefaults returns c with its zero values replaced by the defaults.
func (c Config) WithDefaults() Config {
	c.Events = cmp.Or(c.Events, "off")
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.ActionTimeout = cmp.Or(c.ActionTimeout, 5*time.Second)
	c.PingInterval = cmp.Or(c.PingInterval, time.Second)
	c.MaxMessage = cmp.Or(c.MaxMessage, 1<<20)
	c.MaxPending = cmp.Or(c.MaxPending, 4096)
	c.MaxList = cmp.Or(c.MaxList, 256<<20)
	c.QueueEvents = cmp.Or(c.QueueEvents, 50_000)
	c.QueueBytes = cmp.Or(c.QueueBytes, 64<<20)

	return c
}

// Validate checks a Config that has its defaults filled in.
func (c Config) Validate() error {
	switch {
	case c.Address == "":
		return fault.InvalidField("address", "required", "the manager interface's address is missing")
	case c.Username == "":
		return fault.InvalidField("username", "required", "the manager interface's user name is missing")
	case c.Secret == "":
		return fault.InvalidField("secret", "required", "the manager interface's secret is missing")
	case strings.ContainsAny(c.Username+c.Secret, lineBreaks):
		return fault.InvalidField("secret", "invalid", "the manager interface's user name and secret are one line each")
	case strings.ContainsAny(c.Events, lineBreaks):
		return fault.InvalidField("events", "invalid", "the manager interface's event mask is one line")
	case c.DialTimeout <= 0 || c.ActionTimeout <= 0 || c.PingInterval <= 0:
		return fault.InvalidField("action_timeout", "invalid", "the manager interface's timeouts are positive")
	case c.MaxMessage < 4<<10 || c.MaxPending <= 0 || c.QueueEvents <= 0 || c.QueueBytes < c.MaxMessage ||
		c.MaxList < c.MaxMessage:
		return fault.InvalidField("max_message", "invalid",
			"the manager interface's limits are positive, and its queue and lists hold a message")
	}

	return nil
}

// Deps has the dependencies of a Client.
type Deps = eventconn.Deps
