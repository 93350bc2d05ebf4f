package aiprovider

import (
	"net/netip"

	"trunkline/internal/netguard"
	"trunkline/internal/setting"
)

// Settings are the process's settings of AI providers, of the group ai_provider: the operator's. What an
// account configures of a provider is a Document.
type Settings struct {
	AllowNetworks []netip.Prefix `yaml:"allow_networks" doc:"networks that are not public and that providers' addresses may be in; with loopback among them ws is accepted for URLs whose host is a loopback name or address"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	netguard.ValidateNetworks(c, "allow_networks", s.AllowNetworks)
}

// allowsPlain reports whether URLs may be without TLS, which is meant for development.
func (s Settings) allowsPlain() bool {
	return netguard.AllowsLoopback(s.AllowNetworks)
}
