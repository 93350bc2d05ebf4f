package esl

import (
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
)

// Config is how to reach one event socket.
type Config struct {
	Address  string // host:port; 127.0.0.1:8021 is the switch's default
	User     string // "user@domain" for userauth; "" logs in with the password alone
	Password string

	DialTimeout    time.Duration // to be logged in
	CommandTimeout time.Duration // for a reply, and for the switch to take a command
	MaxMessage     int           // bytes of one message
	MaxPending     int           // commands without a reply
	QueueEvents    int           // events that wait for Take
	QueueBytes     int           // and their bytes
}

// WithDefaults fills what is zero.
func (c Config) WithDefaults() Config {
	setDefault(&c.DialTimeout, 5*time.Second)
	setDefault(&c.CommandTimeout, 5*time.Second)
	setDefault(&c.MaxMessage, 16<<20)
	setDefault(&c.MaxPending, 4096)
	setDefault(&c.QueueEvents, 20_000)
	setDefault(&c.QueueBytes, 64<<20)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate is for a Config with its defaults filled.
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
		return fault.InvalidField("max_message", "invalid", "the event socket's limits are positive, and its queue holds a message")
	}
	return nil
}

// Deps are what a Client works with.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
