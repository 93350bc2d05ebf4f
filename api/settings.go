package api

import (
	"net/netip"
	"net/url"

	"trunkline/internal/setting"
)

// Settings holds the settings of the HTTP API.
type Settings struct {
	AllowedOrigins []string       `yaml:"allowed_origins" doc:"origins of web pages that may use the API and the events channel from a browser, or *; the server's own always may"`
	TrustedProxies []netip.Prefix `yaml:"trusted_proxies" doc:"addresses and networks of proxies, whose X-Forwarded-For is believed"`
}

// Validate implements setting.Group.
func (s Settings) Validate(c *setting.Check) {
	for _, origin := range s.AllowedOrigins {
		c.Must(isOrigin(origin), "allowed_origins", "want origins such as https://board.example.com, or *, got %q",
			origin)
	}
	for _, network := range s.TrustedProxies {
		c.Must(network.IsValid(), "trusted_proxies", "%s is no network", network)
	}
}

// anyOrigin allows the pages of every origin.
const anyOrigin = "*"

// isOrigin reports whether the text is an origin as browsers send it, or anyOrigin.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return text == anyOrigin ||
		err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && text == u.Scheme+"://"+u.Host
}
