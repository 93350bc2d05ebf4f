package aisession

import (
	"time"

	"trunkline/internal/setting"
)

// Settings holds the settings of AI sessions.
type Settings struct {
	MaxSessions    int           `yaml:"max_sessions" doc:"sessions at the same time on this node; more calls are refused; 0: no limit"`
	MaxPerAccount  int           `yaml:"max_per_account" doc:"sessions of one account at the same time in the cluster; more calls are refused; 0: no limit"`
	ConnectTimeout time.Duration `yaml:"connect_timeout" doc:"timeout of one attempt to connect to a provider, handshake included"`
	GiveUp         time.Duration `yaml:"give_up" doc:"how long a provider may be away before its fallback acts"`
	SilenceTimeout time.Duration `yaml:"silence_timeout" doc:"how long a provider may send no audio before its fallback acts; 0: as long as it likes"`
	PlayoutLimit   time.Duration `yaml:"playout_limit" doc:"a provider's audio that may wait to be played; more is dropped"`
	PlayoutLead    time.Duration `yaml:"playout_lead" doc:"a provider's audio that is buffered before it is played, against gaps; negative: none"`
	DrainLimit     time.Duration `yaml:"drain_limit" doc:"how long sessions may continue during a shutdown; at most three quarters of drain_timeout"`
	// DialplanSecrets has a provider and its secret for each provider that dialplans may name.
	DialplanSecrets setting.Secret `yaml:"audiosocket_secrets" doc:"providers that Asterisk's dialplan may connect to without announcing the call, each PROVIDER_ID=SECRET, separated by commas or line breaks; a secret has at least 16 letters, digits or . _ -; empty: none"`
	AnnouncedFor    time.Duration  `yaml:"announced_for" doc:"how long an announced AudioSocket call is expected"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings {
	return Settings{
		MaxSessions: 500, MaxPerAccount: 100,
		ConnectTimeout: 5 * time.Second, GiveUp: 10 * time.Second, PlayoutLimit: 5 * time.Minute,
		PlayoutLead: 40 * time.Millisecond,
		DrainLimit:  10 * time.Second, AnnouncedFor: 2 * time.Minute,
	}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	c.NotNegative("max_sessions", s.MaxSessions)
	c.NotNegative("max_per_account", s.MaxPerAccount)
	c.Positive("connect_timeout", s.ConnectTimeout)
	c.Positive("give_up", s.GiveUp)
	c.Must(s.SilenceTimeout >= 0, "silence_timeout", "must not be negative, is %s", s.SilenceTimeout)
	c.Must(s.PlayoutLimit >= time.Second && s.PlayoutLimit <= time.Hour, "playout_limit", "must be 1s to 1h, is %s",
		s.PlayoutLimit)
	c.Must(s.PlayoutLead <= time.Second, "playout_lead", "must be at most 1s, is %s", s.PlayoutLead)
	c.Positive("drain_limit", s.DrainLimit)
	c.Positive("announced_for", s.AnnouncedFor)
	_, err := parseDialplanSecrets(string(s.DialplanSecrets))
	c.NoError(err, "audiosocket_secrets")
}
