package freeswitch

import (
	"bytes"
	"unicode/utf8"

	"trunkline/format/split"
	"trunkline/internal/jsonscan"
)

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
	if split.JSON(text, split.Sink{Take: func([]byte, int) error { return nil }}) == nil {
		return text
	}

	repaired := make([]byte, 0, len(text)+len(text)/8)
	last := byte(0) // the last byte outside strings other than white space
	for pos := 0; pos < len(text); {
		if text[pos] != '"' {
			c := text[pos]
			if c > ' ' {
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
			i := bytes.IndexByte(text[end:], '"')
			if i >= 0 {
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
		case c == '\\' && jsonscan.EscapeLen(value[pos:]) > 0:
			size = jsonscan.EscapeLen(value[pos:])
		case c >= utf8.RuneSelf:
			r, n := utf8.DecodeRune(value[pos:])
			if r != utf8.RuneError || n > 1 {
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
