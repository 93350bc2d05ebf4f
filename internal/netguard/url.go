package netguard

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// MaxURL is the maximum length of a URL in bytes.
const MaxURL = 2048

// Schemes are the schemes of a kind of URL, with and without TLS.
type Schemes struct{ Secure, Plain string }

// The kinds of URLs.
var (
	WebSocket = Schemes{"wss", "ws"}
	HTTP      = Schemes{"https", "http"}
)

// Check returns an error code and description for an invalid URL, "" for a valid one.
// With allowPlain it also accepts a URL without TLS if the host is a loopback name or
// address. Guard checks the resolved addresses at every connection.
func (s Schemes) Check(address string, allowPlain bool) (code, text string) {
	if len(address) > MaxURL {
		return "too_long", "must have at most " + strconv.Itoa(MaxURL) + " bytes"
	}
	if address == "" {
		return "required", "must not be empty"
	}

	u, err := url.Parse(address)
	if err != nil || strings.ContainsAny(address, " \t\\") {
		return "invalid", "must be a URL" // the parser's error contains the input
	}

	switch {
	case u.Scheme != s.Secure && (u.Scheme != s.Plain || !allowPlain):
		return "unsupported", "must begin with " + s.Secure + "://"
	case u.Scheme == s.Plain && !loopbackHost(u.Hostname()):
		return "unsupported",
			"must begin with " + s.Secure + "://: " + s.Plain + ":// is accepted for a loopback name or address only"
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }):
		return "invalid", "must name its host in ASCII (xn--…)"
	case u.Opaque != "" || u.Hostname() == "":
		return "invalid", "must name a host"
	case !validPort(u):
		return "invalid", "must have a port from 1 to 65535, or none"
	case u.User != nil:
		return "invalid", "must have no user or password"
	case u.Fragment != "" || strings.Contains(address, "#"):
		return "invalid", "must have no fragment"
	}

	return "", ""
}

// IsPlain reports whether a checked URL is without TLS.
func (s Schemes) IsPlain(address string) bool {
	return strings.HasPrefix(strings.ToLower(address), s.Plain+":")
}

func validPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// loopbackHost reports whether the host of a URL is a loopback address, or a loopback
// name (RFC 6761, section 6.3).
func loopbackHost(host string) bool {
	address, err := netip.ParseAddr(host)
	if err == nil {
		return address.Unmap().IsLoopback()
	}
	name := "." + strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.HasSuffix(name, ".localhost")
}
