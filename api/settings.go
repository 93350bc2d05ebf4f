package api

import (
	"net/netip"

	"trunkline/internal/setting"
)

// Settings holds the settings of the HTTP API.
type Settings struct {
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies" doc:"addresses and networks of proxies, whose X-Forwarded-For is believed"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	for _, network := range s.TrustedProxies {
		c.Must(network.IsValid(), "trusted_proxies", "%s is no network", network)
	}
}
