package aiprovider

import (
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

const maxURL = 2048

// checkURL says what is wrong with a provider's address, "" for nothing. Where
// its name leads is looked at by the guard, at every connection.
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

// plainURL says whether a checked address goes without TLS.
func plainURL(address string) bool {
	return strings.HasPrefix(strings.ToLower(address), "ws:")
}
