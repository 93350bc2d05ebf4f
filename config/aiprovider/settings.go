package aiprovider

import (
	"net/netip"
	"slices"

	"trunkline/internal/setting"
)

// Settings holds the settings of accounts' AI providers.
type Settings struct {
	AllowNetworks []netip.Prefix `yaml:"allow_networks" doc:"networks that are not public and that providers' addresses may be in; with loopback among them ws is accepted for URLs whose host is a loopback name or address"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	for _, network := range s.AllowNetworks {
		c.Must(network.IsValid() && !network.Addr().Is4In6(), "allow_networks", "write %s as an IPv4 network", network)
	}
}

// plain reports whether addresses may do without TLS: a development setting.
func (s Settings) plain() bool {
	return slices.ContainsFunc(s.AllowNetworks, func(network netip.Prefix) bool {
		return network.Addr().IsLoopback() || network.Contains(netip.MustParseAddr("127.0.0.1")) || network.Contains(netip.IPv6Loopback())
	})
}
