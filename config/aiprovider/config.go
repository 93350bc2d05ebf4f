package aiprovider

import (
	"errors"
	"net/netip"
	"slices"
)

// Config has the settings of an operator.
type Config struct {
	// AllowNetworks are reached although they are no public addresses. With
	// loopback among them, ws is accepted for URLs whose host is loopback.
	AllowNetworks []netip.Prefix
}

// Validate returns what is invalid in the configuration.
func (c Config) Validate() error {
	for _, network := range c.AllowNetworks {
		if !network.IsValid() {
			return errors.New("aiprovider: AllowNetworks has a network that is none")
		}
	}
	return nil
}

// plain reports whether addresses may do without TLS: a development setting.
func (c Config) plain() bool {
	return slices.ContainsFunc(c.AllowNetworks, func(network netip.Prefix) bool {
		return network.Addr().IsLoopback() || network.Contains(netip.MustParseAddr("127.0.0.1")) || network.Contains(netip.IPv6Loopback())
	})
}
