package aiprovider

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

const maxURL = 2048

// checkURL returns what is wrong with a provider's address, "" for nothing. plain
// also accepts ws where the host is a loopback name or address. The addresses that
// the name resolves to are checked by Guard, at every connection.
func checkURL(address string, plain bool) (code, text string) {
	if len(address) > maxURL {
		return codeTooLong, "must have at most " + strconv.Itoa(maxURL) + " bytes"
	}
	if address == "" {
		return codeRequired, "must not be empty"
	}
	u, err := url.Parse(address)
	if err != nil || strings.ContainsAny(address, " \t\\") {
		return codeInvalid, "must be a URL" // the parser's own words repeat what was sent
	}
	switch {
	case u.Scheme != "wss" && (u.Scheme != "ws" || !plain):
		return codeUnsupported, "must begin with wss://"
	case u.Scheme == "ws" && !loopbackHost(u.Hostname()):
		return codeUnsupported, "must begin with wss://: ws:// is accepted for a loopback name or address only"
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }):
		return codeInvalid, "must name its host in ASCII (xn--…)"
	case u.Opaque != "" || u.Hostname() == "":
		return codeInvalid, "must name a host"
	case !validPort(u):
		return codeInvalid, "must have a port from 1 to 65535, or none"
	case u.User != nil:
		return codeInvalid, "must have no user or password: send a header"
	case u.Fragment != "" || strings.Contains(address, "#"):
		return codeInvalid, "must have no fragment"
	}
	return "", ""
}

func validPort(u *url.URL) bool {
	port := u.Port()
	if port == "" {
		return !strings.HasSuffix(u.Host, ":")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// sameOrigin reports whether two addresses have the same scheme, host and port.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && strings.EqualFold(x.Scheme, y.Scheme) &&
		strings.EqualFold(x.Hostname(), y.Hostname()) && portOf(x) == portOf(y)
}

// portOf returns the port of a URL, that of its scheme where it names none.
func portOf(u *url.URL) uint64 {
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return n
	}
	if strings.EqualFold(u.Scheme, "ws") {
		return 80
	}
	return 443
}

// loopbackHost reports whether the host of a URL is a loopback address, or a name
// that stands for one (RFC 6761, section 6.3).
func loopbackHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().IsLoopback()
	}
	name := "." + strings.TrimSuffix(strings.ToLower(host), ".")
	return strings.HasSuffix(name, ".localhost")
}

// plainURL reports whether a checked address goes without TLS.
func plainURL(address string) bool {
	return strings.HasPrefix(strings.ToLower(address), "ws:")
}
