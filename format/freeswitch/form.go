package freeswitch

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"strings"
	"unicode/utf8"

	"trunkline/format/split"
)

// mod_json_cdr posts a record as the form field "cdr", URL-encoded
// (encode=true) or in base64 (encode=base64). Its Content-Type does not always
// say which: with disable-100-continue=true both, and bare JSON too, arrive as
// application/x-www-form-urlencoded. The body itself does.

// splitForm splits the bodies of mod_json_cdr, whichever Content-Type they have.
func splitForm(body []byte, emit split.Sink) error {
	if startsJSON(body) {
		return split.JSON(body, emit)
	}
	field, offset, err := findCDRField(body)
	if err != nil {
		return err
	}
	if len(field) > maxEscapeFactor*split.MaxRecord {
		return split.RecordTooLarge(offset)
	}
	text, err := decodeField(string(field))
	if err != nil {
		return split.Malformed(offset, "the field cdr is neither URL-encoded nor base64-encoded JSON")
	}
	// Offsets in the decoded text say nothing about the body; its line does.
	return split.WithLine(split.JSON(text, emit), text)
}

// startsJSON reports whether text begins with an object or an array. Neither a form
// nor base64 does.
func startsJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// findCDRField finds the only field cdr, still encoded, and its offset.
func findCDRField(body []byte) (field []byte, offset int, err error) {
	found := false
	for start := 0; start < len(body); {
		end := len(body)
		if i := bytes.IndexByte(body[start:], '&'); i >= 0 {
			end = start + i
		}
		if value, ok := bytes.CutPrefix(body[start:end], []byte("cdr=")); ok {
			if found {
				return nil, 0, split.Malformed(start, "the field cdr is there twice")
			}
			field, offset, found = value, end-len(value), true
		}
		start = end + 1
	}
	if !found {
		return nil, 0, split.Malformed(0, "the field cdr is missing")
	}
	return field, offset, nil
}

// decodeField returns the JSON text of the field cdr.
func decodeField(field string) ([]byte, error) {
	text, err := url.QueryUnescape(field)
	if err == nil && startsJSON([]byte(text)) {
		return repairJSON([]byte(text)), nil
	}
	return decodeBase64(field)
}

// decodeBase64 accepts the changes that servers and proxies make to mod_json_cdr's
// bare base64: + replaced by a space, + / = percent-encoded, padding removed.
func decodeBase64(s string) ([]byte, error) {
	s, err := url.PathUnescape(s)
	if err != nil {
		return nil, err
	}
	s = strings.TrimRight(strings.ReplaceAll(s, " ", "+"), "=\r\n")
	return base64.RawStdEncoding.DecodeString(s)
}

// repairJSON percent-encodes the characters that cannot occur in a JSON string
// (quotes, backslashes, control characters, bytes that are not UTF-8), and percent
// signs. It returns valid JSON unchanged.
//
// With encode=true and its default encode-values=true, FreeSWITCH URL-encodes the
// values of channel variables, and then the whole text without escaping the percent
// signs again. Unescaping the body once unescapes those values too. Encoding them
// again restores the values of a body with encode=false.
//
// The encoding is ambiguous: a value that contains a quote, a comma and a quoted word
// looks like the next member, and a backslash before an n like a JSON escape.
func repairJSON(text []byte) []byte {
	if split.JSON(text, func([]byte, int) error { return nil }) == nil {
		return text
	}
	repaired := make([]byte, 0, len(text)+len(text)/8)
	last := byte(0) // the last byte outside strings other than white space
	for pos := 0; pos < len(text); {
		if text[pos] != '"' {
			if c := text[pos]; c > ' ' {
				last = c
			}
			repaired = append(repaired, text[pos])
			pos++
			continue
		}
		end := pos + 1
		if last == ':' {
			end += valueLen(text[end:])
			repaired = append(appendRepaired(append(repaired, '"'), text[pos+1:end]), '"')
		} else { // names of members contain no quotes
			if i := bytes.IndexByte(text[end:], '"'); i >= 0 {
				end += i
			} else {
				end = len(text)
			}
			repaired = append(repaired, text[pos:min(end+1, len(text))]...)
		}
		last = '"'
		pos = end + 1
	}
	return repaired
}

// valueLen returns the number of bytes of text, which follows an opening quote, before
// the quote that closes the value.
func valueLen(text []byte) int {
	for pos := 0; pos < len(text); pos++ {
		if text[pos] == '"' && endsValue(text[pos+1:]) {
			return pos
		}
	}
	return len(text)
}

// endsValue reports whether rest, which follows a quote, continues like JSON after a
// member's value: closing brackets, then the end, the next member or the next object
// of an array.
func endsValue(rest []byte) bool {
	after := bytes.TrimLeft(rest, "}] \t\r\n")
	closed := bytes.ContainsAny(rest[:len(rest)-len(after)], "}]")
	if len(after) == 0 {
		return closed
	}
	if after[0] != ',' {
		return false
	}
	after = bytes.TrimLeft(after[1:], " \t\r\n")
	if closed && len(after) > 0 && after[0] == '{' {
		return true
	}
	name, quoted := bytes.CutPrefix(after, []byte{'"'})
	i := bytes.IndexByte(name, '"')
	return quoted && i > 0 && bytes.HasPrefix(bytes.TrimLeft(name[i+1:], " \t\r\n"), []byte{':'})
}

// appendRepaired appends the content of a JSON string. It keeps JSON escapes.
func appendRepaired(dst, value []byte) []byte {
	const hex = "0123456789ABCDEF"
	for pos := 0; pos < len(value); {
		size := 1
		switch c := value[pos]; {
		case c == '\\' && split.EscapeLen(value[pos+1:]) > 0:
			size += split.EscapeLen(value[pos+1:])
		case c >= utf8.RuneSelf:
			if r, n := utf8.DecodeRune(value[pos:]); r != utf8.RuneError || n > 1 {
				size = n
				break
			}
			fallthrough
		case c == '"', c == '\\', c == '%', c < ' ':
			dst = append(dst, '%', hex[c>>4], hex[c&15])
			pos++
			continue
		}
		dst = append(dst, value[pos:pos+size]...)
		pos += size
	}
	return dst
}
