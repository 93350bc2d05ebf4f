package asterisk

import (
	"strings"
	"time"

	"trunkline/internal/setting"
	"trunkline/internal/tlsclient"
	"trunkline/origination/dialtext"
)

// Settings holds the address of the manager interface and the dial strings. In these {extension},
// {destination}, {context}, {account} and {domain} are replaced.
type Settings struct {
	Address         string             `yaml:"address" doc:"host:port of the manager interface, 5038 by default on Asterisk, 5039 with TLS"`
	Username        string             `yaml:"username" doc:"user of the manager interface: the section's name in manager.conf"`
	Secret          setting.Secret     `yaml:"secret" doc:"secret of that user"`
	TLS             tlsclient.Settings `yaml:"tls"`
	Owner           string             `yaml:"owner" doc:"channel of the owner's phone"`
	Destination     string             `yaml:"destination" doc:"channel of the destination; only a Local channel has a call record of its own"`
	Context         string             `yaml:"context" doc:"dialplan context in which destinations are looked up"`
	AccountCode     string             `yaml:"account_code" doc:"account code of the calls' channels and records; -: the phone's own"`
	CallerID        string             `yaml:"caller_id" doc:"caller number shown to the destination"`
	CallerName      string             `yaml:"caller_name" doc:"caller name shown to the destination"`
	RingUser        time.Duration      `yaml:"ring_user" doc:"how long the phone of a call's owner rings"`
	RingDestination time.Duration      `yaml:"ring_destination" doc:"how long a destination rings"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{
		Owner: "PJSIP/{extension}", Destination: "Local/{destination}@{context}", Context: "default",
		AccountCode: "{account}", CallerID: "{extension}", CallerName: "{extension}",
		RingUser: 30 * time.Second, RingDestination: time.Minute,
	}
}

// Validate implements setting.Group. It is called if the driver is asterisk.
func (s Settings) Validate(c *setting.Check) {
	c.Dialable("address", s.Address)
	c.Must(s.Username != "", "username", "origination.driver asterisk needs it")
	c.Must(s.Secret != "", "secret", "origination.driver asterisk needs it")
	c.Must(!strings.ContainsAny(s.Username+string(s.Secret), "\r\n\x00"), "secret",
		"and username must be one line each")
	s.TLS.Validate(c.Group("tls"))
	c.Must(s.RingUser >= time.Second, "ring_user", "must be at least 1s, is %s", s.RingUser)
	c.Must(s.RingDestination >= time.Second, "ring_destination", "must be at least 1s, is %s", s.RingDestination)

	// The values are checked with each order; this checks the templates.
	example := dialtext.Placeholders{"extension": "1", "destination": "2", "context": "c", "account": "a",
		"domain": "d"}
	for _, t := range []struct{ name, text, also string }{
		{"owner", s.Owner, dialChars}, {"destination", s.Destination, dialChars}, {"context", s.Context, ""},
		{"account_code", s.AccountCode, ""}, {"caller_id", s.CallerID, numberChars},
		{"caller_name", s.CallerName, nameChars},
	} {
		filled, err := example.Fill(t.text)
		c.Must(err == nil && dialtext.Safe(filled, t.also), t.name,
			"a character or a {name} in it is not allowed there, got %q", t.text)
	}

	for name, text := range map[string]string{"owner": s.Owner, "destination": s.Destination} {
		technology, resource, _ := strings.Cut(text, "/")
		c.Must(technology != "" && resource != "", name, "want a channel such as PJSIP/{extension}, got %q", text)
	}
}
