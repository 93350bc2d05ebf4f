package aiprovider

import (
	"net/url"
	"strconv"
	"strings"
)

// sameOrigin reports whether two addresses have the same scheme, host and port.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && strings.EqualFold(x.Scheme, y.Scheme) &&
		strings.EqualFold(x.Hostname(), y.Hostname()) && effectivePort(x) == effectivePort(y)
}

// effectivePort returns the port of a URL, or the default port of its scheme.
func effectivePort(u *url.URL) uint64 {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	if err == nil {
		return n
	}
	if strings.EqualFold(u.Scheme, "ws") {
		return 80
	}
	return 443
}
