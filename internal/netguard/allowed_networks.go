package netguard

import (
	"net/netip"
	"slices"

	"trunkline/internal/setting"
)

// AllowsLoopback reports whether the networks include a loopback address: a setting
// for development, which also permits URLs without TLS.
func AllowsLoopback(networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool {
		return network.Addr().IsLoopback() || network.Contains(netip.MustParseAddr("127.0.0.1")) ||
			network.Contains(netip.IPv6Loopback())
	})
}

// ValidateNetworks checks the networks of a setting for Guard.Allow.
func ValidateNetworks(c *setting.Check, key string, networks []netip.Prefix) {
	for _, network := range networks {
		c.Must(network.IsValid() && !network.Addr().Is4In6(), key, "write %s as an IPv4 network", network)
	}
}
