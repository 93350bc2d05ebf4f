package freeswitch

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/telephony/esl"
)

// Config has the address of one FreeSWITCH and its dial templates, in which {extension}, {domain},
// {destination} and {context} are replaced.
type Config struct {
	Address  string // host:port of the event socket
	User     string // "user@domain" to log in as a user of the directory; "" with the password alone
	Password string

	Owner              string // dial string of the owner's phones; default user/{extension}@{domain}
	Destination        string // dial string of the destination; default loopback/{destination}/{context}/XML
	Context            string // dialplan context of the destination; default "default"
	Domain             string // for {domain}; "" asks the switch which of the account's domain and its own the owner is in
	OwnerCallerID      string // number that the owner's phone shows; default {destination}
	OwnerCallerName    string // name that the owner's phone shows; default Click to call
	CallerID           string // number shown to the destination; default {extension}
	CallerName         string // name shown to the destination; default {extension}
	Ringback           string // tone for the owner while the destination rings; "-" for none
	OwnerTimeout       time.Duration
	DestinationTimeout time.Duration

	DialTimeout    time.Duration // limit for connecting and logging in
	CommandTimeout time.Duration // limit for the reply to a command
	ReconnectMin   time.Duration // first pause before reconnecting
	ReconnectMax   time.Duration // longest pause before reconnecting
	AuditEvery     time.Duration // interval of comparisons with the switch's channels
	GoneAfter      time.Duration // time without a channel after which a call has ended
	QueueTimeout   time.Duration // longest wait of a call when the switch limits sessions per second
	MaxCalls       int           // largest number of unfinished calls
	AllEvents      bool          // subscribe to all events, which detects lost ones at once
}

// WithDefaults returns c with its zero values replaced by the defaults.
func (c Config) WithDefaults() Config {
	setDefault(&c.Owner, "user/{extension}@{domain}")
	setDefault(&c.Destination, "loopback/{destination}/{context}/XML")
	setDefault(&c.Context, "default")
	setDefault(&c.OwnerCallerID, "{destination}")
	setDefault(&c.OwnerCallerName, "Click to call")
	setDefault(&c.CallerID, "{extension}")
	setDefault(&c.CallerName, "{extension}")
	setDefault(&c.Ringback, "%(2000,4000,440,480)")
	setDefault(&c.OwnerTimeout, 30*time.Second)
	setDefault(&c.DestinationTimeout, 60*time.Second)
	setDefault(&c.DialTimeout, 5*time.Second)
	setDefault(&c.CommandTimeout, 5*time.Second)
	setDefault(&c.ReconnectMin, 250*time.Millisecond)
	setDefault(&c.ReconnectMax, 15*time.Second)
	setDefault(&c.AuditEvery, 15*time.Second)
	setDefault(&c.GoneAfter, 5*time.Second)
	setDefault(&c.QueueTimeout, 8*time.Second)
	setDefault(&c.MaxCalls, 4000)
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate checks a Config that has its defaults filled in. New checks the socket's settings.
func (c Config) Validate() error {
	for name, positive := range map[string]bool{
		"owner_timeout":       c.OwnerTimeout >= time.Second,
		"destination_timeout": c.DestinationTimeout >= time.Second,
		"reconnect_min":       c.ReconnectMin > 0 && c.ReconnectMax >= c.ReconnectMin,
		"audit_every":         c.AuditEvery > 0,
		"gone_after":          c.GoneAfter > 0,
		"queue_timeout":       c.QueueTimeout > 0,
		"max_calls":           c.MaxCalls > 0,
	} {
		if !positive {
			return fault.InvalidField(name, "invalid", name+" is too small")
		}
	}
	// The values are checked with each order; this checks the templates.
	example := placeholders{"extension": "1", "domain": "d", "destination": "2", "context": "c"}
	for _, t := range []struct{ name, text, also string }{
		{"owner", c.Owner, ownerDialChars}, {"destination", c.Destination, destinationDialChars},
		{"context", c.Context, ""}, {"caller_id", c.CallerID, ""}, {"owner_caller_id", c.OwnerCallerID, ""},
		{"caller_name", c.CallerName, displayChars}, {"owner_caller_name", c.OwnerCallerName, displayChars},
		{"ringback", c.Ringback, toneChars}, {"domain", c.Domain, domainChars},
	} {
		filled, err := example.fill(t.text)
		if err != nil || !safe(filled, t.also) {
			return fault.InvalidField(t.name, "invalid", t.name+" holds a character or a {name} that has no place there")
		}
	}
	return nil
}

func (c Config) socket() esl.Config {
	return esl.Config{
		Address: c.Address, User: c.User, Password: c.Password,
		DialTimeout: c.DialTimeout, CommandTimeout: c.CommandTimeout,
	}
}

// Deps has the dependencies of a Driver.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
