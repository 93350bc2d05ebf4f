package aiprovider

import (
	"net/netip"
	"testing"

	"trunkline/internal/setting"
)

func TestWhenWSIsAccepted(t *testing.T) {
	for network, want := range map[string]bool{
		"127.0.0.0/8": true, "127.0.0.1/32": true, "127.0.0.9/32": true, "::1/128": true, "0.0.0.0/0": true,
		"::/0":       true,
		"10.0.0.0/8": false, "fd00::/8": false, "128.0.0.0/8": false,
	} {
		if got := (Settings{AllowNetworks: []netip.Prefix{netip.MustParsePrefix(network)}}).allowsPlain(); got != want {
			t.Errorf("%s: %v", network, got)
		}
	}

	if (Settings{}).allowsPlain() ||
		setting.Validate("ai_provider", Settings{AllowNetworks: []netip.Prefix{{}}}) == nil {
		t.Error("ws is never accepted by default, and no network is refused")
	}
}
