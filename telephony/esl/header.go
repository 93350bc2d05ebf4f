package esl

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

// header is one line of a message. Its value is not decoded.
type header struct{ name, value string }

// headers are the lines of one message, in their order.
type headers []header

// first returns the first value of a header, or "" if there is none. Names are compared
// case-insensitively, as in the switch.
func (h headers) first(name string) string {
	for i := range h {
		if len(h[i].name) == len(name) && strings.EqualFold(h[i].name, name) {
			return h[i].value
		}
	}
	return ""
}

// parseHeaders parses "Name: value" lines up to an empty line or the end of block, and returns the
// remainder after that line.
func parseHeaders(block string) (headers, string, error) {
	h := make(headers, 0, strings.Count(block, "\n")+1)
	for block != "" {
		line, rest, _ := strings.Cut(block, "\n")
		block = rest
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			return h, block, nil
		}

		parsed, err := parseHeader(line)
		if err != nil {
			return nil, "", err
		}

		h = append(h, parsed)
	}

	return h, "", nil
}

// parseHeader splits a line at the first colon that is followed by a space. The name of a channel
// variable may contain a colon ("variable_nolocal:x"); an encoded value contains neither.
func parseHeader(line string) (header, error) {
	name, value, ok := strings.Cut(line, ": ")
	if !ok {
		name, ok = strings.CutSuffix(line, ":")
	}
	if !ok || name == "" {
		return header{}, fmt.Errorf("%w: a header line without a name", ErrMalformed)
	}
	return header{name, strings.TrimSpace(value)}, nil
}

// unescape decodes %XX. It returns a value with invalid encoding unchanged, because not every module
// encodes its values.
func unescape(value string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	decoded, err := url.PathUnescape(value)
	if err != nil {
		return value
	}
	return decoded
}

// isBlank reports whether b consists of white space.
func isBlank(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
