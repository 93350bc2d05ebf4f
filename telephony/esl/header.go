package esl

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
)

// header is one line of a message; value is as it came.
type header struct{ name, value string }

type headers []header

// get is the first value of the name, "" when there is none. Names are compared
// ignoring case, as the switch does.
func (h headers) get(name string) string {
	for i := range h {
		if len(h[i].name) == len(name) && strings.EqualFold(h[i].name, name) {
			return h[i].value
		}
	}
	return ""
}

// parseHeaders reads "Name: value" lines up to an empty line or the end and
// returns what follows that line.
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

// parseHeader cuts at the first colon that a space follows: the name of a
// channel variable may hold a colon ("variable_nolocal:x"), an encoded value
// never holds either.
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

// unescape decodes %XX. A value that is not well encoded is what it says: not
// every module encodes.
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

// onlySpace says whether the bytes are nothing but line ends and blanks.
func onlySpace(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }
