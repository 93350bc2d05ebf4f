package freeswitch

import (
	"time"

	"trunkline/internal/setting"
	"trunkline/origination/dialtext"
)

// Settings holds the settings of the FreeSWITCH driver. In the dial strings {extension}, {domain}, {destination} and
// {context} are replaced.
type Settings struct {
	Address         string         `yaml:"address" doc:"host:port of the event socket"`
	User            string         `yaml:"user" doc:"user@domain of the directory to log in as; empty: the password alone"`
	Password        setting.Secret `yaml:"password" doc:"password of the event socket"`
	Owner           string         `yaml:"owner" doc:"dial string of the owner's phones"`
	Destination     string         `yaml:"destination" doc:"dial string of the destination"`
	Context         string         `yaml:"context" doc:"dialplan context in which destinations are looked up"`
	Domain          string         `yaml:"domain" doc:"domain of the users on the switch; empty: the account's domain or the switch's own, whichever the switch's directory has the owner in"`
	CallerID        string         `yaml:"caller_id" doc:"caller number shown to the destination"`
	CallerName      string         `yaml:"caller_name" doc:"caller name shown to the destination"`
	Ringback        string         `yaml:"ringback" doc:"tone for the owner while the destination rings, - for none"`
	RingUser        time.Duration  `yaml:"ring_user" doc:"how long the phones of a call's owner ring"`
	RingDestination time.Duration  `yaml:"ring_destination" doc:"how long a destination rings"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{
		Owner: "user/{extension}@{domain}", Destination: "loopback/{destination}/{context}/XML", Context: "default",
		CallerID: "{extension}", CallerName: "{extension}", Ringback: "%(2000,4000,440,480)",
		RingUser: 30 * time.Second, RingDestination: time.Minute,
	}
}

// Validate implements setting.Group. It is called if the driver is freeswitch.
func (s Settings) Validate(c *setting.Check) {
	c.Dialable("address", s.Address)
	c.Must(s.Password != "", "password", "origination.driver freeswitch needs it")
	c.Must(s.RingUser >= time.Second, "ring_user", "must be at least 1s, is %s", s.RingUser)
	c.Must(s.RingDestination >= time.Second, "ring_destination", "must be at least 1s, is %s", s.RingDestination)

	// The values are checked with each order; this checks the templates.
	example := dialtext.Placeholders{"extension": "1", "domain": "d", "destination": "2", "context": "c"}
	for _, t := range []struct{ name, text, also string }{
		{"owner", s.Owner, ownerDialChars}, {"destination", s.Destination, destinationDialChars},
		{"context", s.Context, ""}, {"caller_id", s.CallerID, ""}, {"caller_name", s.CallerName, displayChars},
		{"ringback", s.Ringback, toneChars}, {"domain", s.Domain, domainChars},
	} {
		filled, err := example.Fill(t.text)
		c.Must(err == nil && isSafe(filled, t.also), t.name, "a character or a {name} in it is not allowed there, got %q",
			t.text)
	}
}
