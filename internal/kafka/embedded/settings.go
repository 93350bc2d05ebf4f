package embedded

import (
	"net/netip"

	"trunkline/internal/setting"
)

// Settings holds the settings of the embedded broker. Their keys are in the group kafka.
type Settings struct {
	Listen   string        `yaml:"embedded_listen" doc:"loopback address on which the embedded broker also listens, for kcat; empty: none"`
	MaxBytes setting.Bytes `yaml:"embedded_max_bytes" doc:"size of the embedded broker's folder; near it the oldest records are deleted"`
}

// DefaultSettings returns the settings where nothing is set.
func DefaultSettings() Settings { return Settings{MaxBytes: 512 << 20} }

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	if s.Listen != "" {
		host := c.HostPort("embedded_listen", s.Listen)
		address, err := netip.ParseAddr(host)
		c.Must(host == "localhost" || err == nil && address.IsLoopback(), "embedded_listen",
			"the embedded broker has no authentication: use a loopback address such as 127.0.0.1:9092")
	}
	c.Must(s.MaxBytes >= 64<<20, "embedded_max_bytes", "must be at least 64MiB, is %s", s.MaxBytes)
}
