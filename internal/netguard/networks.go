package netguard

import (
	"net/netip"
	"slices"

	"trunkline/internal/setting"
)

// AllowsLoopback reports whether a loopback address is among the networks: a setting
// for development, with which URLs without TLS are accepted too.
func AllowsLoopback(networks []netip.Prefix) bool {
	return slices.ContainsFunc(networks, func(network netip.Prefix) bool {
		return network.Addr().IsLoopback() || network.Contains(netip.MustParseAddr("127.0.0.1")) || network.Contains(netip.IPv6Loopback())
	})
}

// ValidateNetworks checks the networks of a setting that Guard allows.
func ValidateNetworks(c *setting.Check, key string, networks []netip.Prefix) {
	for _, network := range networks {
		c.Must(network.IsValid() && !network.Addr().Is4In6(), key, "write %s as an IPv4 network", network)
	}
}
