package freeswitch

import (
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"trunkline/event"
)

// appendEvent appends the event as a JSON object.
func appendEvent(dst []byte, headers []plainHeader, content []byte) []byte {
	dst = append(dst, '{')
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(event.AppendString(dst, h.name), ':')
		dst = appendValue(dst, h.value)
	}

	if content != nil {
		dst = append(dst, `,"_body":`...)
		dst = event.AppendString(dst, string(content))
	}

	return append(dst, '}')
}

// appendValue appends a header's value, decoded: a string, or the array that
// FreeSWITCH writes as "ARRAY::one|:two".
func appendValue(dst []byte, encoded string) []byte {
	value := urlDecode(encoded)
	list, ok := strings.CutPrefix(value, "ARRAY::")
	if !ok || list == "" {
		return event.AppendString(dst, value)
	}

	dst = append(dst, '[')
	for i, element := range strings.Split(list, "|:") {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = event.AppendString(dst, element)
	}

	return append(dst, ']')
}

// urlDecode decodes %xx and leaves all other bytes unchanged, including + and a stray
// %, as FreeSWITCH does. A value whose decoded form is not UTF-8 remains encoded.
func urlDecode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}

	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			var decoded [1]byte
			_, err := hex.Decode(decoded[:], []byte(s[i+1:i+3]))
			if err == nil {
				b.WriteByte(decoded[0])
				i += 2
				continue
			}
		}

		b.WriteByte(s[i])
	}

	if !utf8.ValidString(b.String()) {
		return s
	}

	return b.String()
}
