package freeswitch

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/telephony/esl"
)

// Config is one FreeSWITCH and how to dial on it. In the templates stand
// {extension}, {domain}, {destination} and {context}.
type Config struct {
	Address  string // host:port of the event socket
	User     string // "user@domain" to log in as a user of the directory; "" with the password alone
	Password string

	Owner              string // dial string of the owner's phones; user/{extension}@{domain}
	Destination        string // dial string behind them; loopback/{destination}/{context}/XML
	Context            string // dialplan context in which the destination is looked up; default
	Domain             string // for {domain}; "" asks the switch which of the account's domain and its own the owner is in
	OwnerCallerID      string // number that the owner's phone shows; {destination}
	OwnerCallerName    string // name beside it; Click to call
	CallerID           string // number that the destination is shown; {extension}
	CallerName         string // name beside it; {extension}
	Ringback           string // tone for the owner while the destination rings; "-" for none
	OwnerTimeout       time.Duration
	DestinationTimeout time.Duration

	DialTimeout    time.Duration // to be logged in
	CommandTimeout time.Duration // for the switch to answer a command
	ReconnectMin   time.Duration // first pause before connecting again
	ReconnectMax   time.Duration // longest
	AuditEvery     time.Duration // between looks at the switch's channels
	GoneAfter      time.Duration // how long a call must be without a channel to have ended
	QueueTimeout   time.Duration // how long a call waits for its turn where the switch limits sessions per second
	MaxCalls       int           // unfinished calls
	AllEvents      bool          // subscribe to all events, to notice missing ones at once
}

// WithDefaults fills what is zero.
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

// Validate is for a Config with its defaults filled. The socket's own settings
// are checked by New.
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
	// What is filled in is checked with each order; here what stands around it.
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

// Deps are what a Driver works with.
type Deps struct {
	Log     *slog.Logger
	Metrics prometheus.Registerer
}
