package cli

import (
	"net"
	"net/netip"

	"trunkline/settings"
)

// ServerURL returns the URL of a server with these settings, for clients on its machine.
func ServerURL(s *settings.Settings) string {
	scheme := "https"
	if s.TLS.Mode == "off" {
		scheme = "http"
	}

	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		host, port = "", "9443" // Validate rejects an invalid address
	}

	address, err := netip.ParseAddr(host)
	if host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
	}

	return scheme + "://" + net.JoinHostPort(host, port)
}
