package webhook

import (
	"net/netip"
	"time"

	"trunkline/internal/netguard"
	"trunkline/internal/setting"
)

// Settings holds the settings of webhooks.
type Settings struct {
	AllowNetworks []netip.Prefix `yaml:"allow_networks" doc:"networks that are not public and that webhooks' URLs may lead to; with loopback among them http is accepted for URLs whose host is a loopback name or address"`
	Timeout       time.Duration  `yaml:"timeout" doc:"time that one request may take, with connecting"`
	FirstWait     time.Duration  `yaml:"first_wait" doc:"wait after the first failure; it doubles with every further one"`
	LongestWait   time.Duration  `yaml:"longest_wait" doc:"longest wait; a webhook that fails after it is paused"`
	MaxPerAccount int            `yaml:"max_per_account" doc:"webhooks of one account"`
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{Timeout: 15 * time.Second, FirstWait: 5 * time.Second, LongestWait: time.Hour, MaxPerAccount: 100}
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	netguard.ValidateNetworks(c, "allow_networks", s.AllowNetworks)
	c.Must(s.Timeout > 0 && s.Timeout <= time.Minute, "timeout", "must be above 0 and at most 1m, is %s", s.Timeout)
	c.Must(s.FirstWait > 0, "first_wait", "must be above 0, is %s", s.FirstWait)
	c.Must(s.LongestWait >= s.FirstWait, "longest_wait", "must be at least first_wait, is %s", s.LongestWait)
	c.Must(s.MaxPerAccount >= 1, "max_per_account", "must be at least 1, is %d", s.MaxPerAccount)
}

// pauseAfter returns the number of consecutive failures after which a webhook is paused:
// the last of them follows the longest wait.
func (s Settings) pauseAfter() int {
	failures := 2
	for wait := s.FirstWait; wait < s.LongestWait; wait *= 2 {
		failures++
	}
	return failures
}
