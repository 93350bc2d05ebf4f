package cli

import (
	"net"
	"net/netip"
	"os"

	"trunkline/config/settings"
)

// ServerURL returns the URL of a server with these settings, as seen from its
// own machine.
func ServerURL(s *settings.Settings) string {
	scheme := "https"
	if s.TLS.Mode == "off" {
		scheme = "http"
	}
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil {
		host, port = "", "9443" // Validate has seen to it
	}
	if address, err := netip.ParseAddr(host); host == "" || err == nil && address.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// ServerTrust returns the flags' trust, and the certificate that a server on the data
// directory has made for itself, as soon as it is there.
func ServerTrust(s *settings.Settings, insecure bool, ca string) Trust {
	trust := Trust{Insecure: insecure}
	if ca != "" {
		trust.Files = append(trust.Files, ca)
	}
	certFile, _ := s.SelfSigned()
	if _, err := os.Stat(certFile); err == nil {
		trust.Files = append(trust.Files, certFile)
	}
	return trust
}
