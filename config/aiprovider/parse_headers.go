package aiprovider

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/http/httpguts"
)

// Bounds of headers. Servers commonly refuse a request whose headers are over
// 16 KiB in all.
const (
	maxHeaders     = 32
	maxHeaderName  = 128
	maxHeaderValue = 8 << 10
	maxHeaderBytes = 12 << 10 // names and values together
)

// reservedHeaders are the headers that the handshake sets, or that control the connection
// or the framing of the request (RFC 9110, RFC 9112; RFC 6455, 4.1), in lower case. Origin
// is not among them, because only browsers send it.
var reservedHeaders = []string{
	"connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "proxy-authenticate",
	"proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
}

// parseHeaders parses an object of header names and values.
func (p *parser) parseHeaders() map[string]string {
	if len(p.members) > maxHeaders {
		p.objectFault(codeTooMany, "must be at most %d headers", maxHeaders)
		p.members = nil
		return nil
	}

	values := make(map[string]string, len(p.members))
	seen := make(map[string]bool, len(p.members))
	size := 0

	for _, name := range slices.Sorted(maps.Keys(p.members)) {
		value := optional[string](p, name, "a string")
		p.checkHeaderName(name, seen)
		if value == nil {
			continue
		}

		code, text := checkHeaderValue(*value)
		if code != "" {
			p.fault(shorten(name), code, "%s", text)
		}

		values[name] = *value
		size += len(name) + len(*value)
	}

	if size > maxHeaderBytes {
		p.objectFault(codeTooLong, "must have at most %d bytes in all", maxHeaderBytes)
	}

	return values
}

func (p *parser) checkHeaderName(name string, seen map[string]bool) {
	lower := strings.ToLower(name)
	switch {
	case len(name) > maxHeaderName:
		p.fault(shorten(name), codeTooLong, "must have at most %d bytes", maxHeaderName)
	case !httpguts.ValidHeaderFieldName(name):
		p.fault(shorten(name), codeInvalid, "is not the name of a header")
	case slices.Contains(reservedHeaders, lower), strings.HasPrefix(lower, "sec-websocket-"):
		p.fault(name, codeReserved, "is reserved for the handshake")
	case seen[lower]:
		p.fault(name, codeRepeated, "is repeated in another spelling")
	}

	seen[lower] = true
}

// checkHeaderValue returns the code and message of an invalid value, "" if it is valid.
// The message never contains the value.
func checkHeaderValue(value string) (code, text string) {
	switch {
	case len(value) > maxHeaderValue:
		return codeTooLong, "must have at most " + strconv.Itoa(maxHeaderValue) + " bytes"
	case strings.ContainsFunc(value, unicode.IsControl):
		return codeInvalid, "must not have control characters"
	case strings.TrimSpace(value) != value:
		return codeInvalid, "must not begin or end with a space"
	}
	return "", ""
}
