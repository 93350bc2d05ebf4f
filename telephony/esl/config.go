package esl

import (
	"cmp"
	"crypto/tls"
	"strings"
	"time"

	"trunkline/internal/fault"
	"trunkline/telephony/eventconn"
)

// Config has the address and the limits of one event socket.
type Config struct {
	Address  string // host:port; FreeSWITCH listens on 127.0.0.1:8021 by default
	User     string // "user@domain" for userauth; "" logs in with the password alone
	Password string
	TLS      *tls.Config // for a TLS proxy in front of the event socket, which does not support TLS; nil uses plain TCP
	// Raw does not parse events in JSON: only Event.Raw has them.
	Raw bool

	DialTimeout    time.Duration // limit for connecting and logging in
	CommandTimeout time.Duration // limit for a reply, and for writing a command
	MaxMessage     int           // largest message in bytes
	MaxPending     int           // largest number of commands without a reply
	QueueEvents    int           // largest number of events waiting for Take
	QueueBytes     int           // largest memory of the events waiting for Take, in bytes
}

// WithDefaults returns c with its zero values replaced by the defaults.
func (c Config) WithDefaults() Config {
	c.DialTimeout = cmp.Or(c.DialTimeout, 5*time.Second)
	c.CommandTimeout = cmp.Or(c.CommandTimeout, 5*time.Second)
	c.MaxMessage = cmp.Or(c.MaxMessage, 16<<20)
	c.MaxPending = cmp.Or(c.MaxPending, 4096)
	c.QueueEvents = cmp.Or(c.QueueEvents, 20_000)
	c.QueueBytes = cmp.Or(c.QueueBytes, 64<<20)
	return c
}

// Validate checks a Config that has its defaults filled in.
func (c Config) Validate() error {
	switch {
	case c.Address == "":
		return fault.InvalidField("address", "required", "the event socket's address is missing")
	case c.Password == "":
		return fault.InvalidField("password", "required", "the event socket's password is missing")
	case strings.ContainsAny(c.Password+c.User, "\r\n\x00"):
		return fault.InvalidField("password", "invalid", "the event socket's user and password are one line each")
	case c.DialTimeout <= 0 || c.CommandTimeout <= 0:
		return fault.InvalidField("command_timeout", "invalid", "the event socket's timeouts are positive")
	case c.MaxMessage < 4<<10 || c.MaxPending <= 0 || c.QueueEvents <= 0 || c.QueueBytes < c.MaxMessage:
		return fault.InvalidField("max_message", "invalid",
			"the event socket's limits are positive, and its queue holds a message")
	}

	return nil
}

// Deps has the dependencies of a Client.
type Deps = eventconn.Deps
