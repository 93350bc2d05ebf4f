package jsonscan

import (
	"encoding/binary"
	"math/bits"
)

// skipValue checks the value at b[i] and returns its end. depth is the number of enclosing
// objects and arrays. b must be valid UTF-8. Like all functions of the grammar, it returns the
// offset of the error with an error.
func skipValue(b []byte, i, depth int) (end int, err error) {
	if i >= len(b) {
		return failAt(b, i, errEnd)
	}

	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{':
		return skipObject(b, i+1, depth+1)
	case c == '[':
		return skipArray(b, i+1, depth+1)
	// c is a byte: below '0' the difference wraps to more than 10.
	case c == '-' || c-'0' < 10:
		return skipNumber(b, i)
	case c == 't':
		return skipLiteral(b, i, "true")
	case c == 'f':
		return skipLiteral(b, i, "false")
	case c == 'n':
		return skipLiteral(b, i, "null")
	}

	return failAt(b, i, errValue)
}

func skipObject(b []byte, i, depth int) (end int, err error) {
	if depth > MaxDepth {
		return i - 1, ErrDepth
	}

	i = SkipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}

	for {
		i, err = skipString(b, i)
		if err != nil {
			return i, err
		}

		i, err = skipColon(b, i)
		if err != nil {
			return i, err
		}

		i, err = skipValue(b, i, depth)
		if err != nil {
			return i, err
		}

		var more bool
		i, more, err = SkipComma(b, i, '}')
		if err != nil || !more {
			return i, err
		}
	}
}

func skipArray(b []byte, i, depth int) (end int, err error) {
	if depth > MaxDepth {
		return i - 1, ErrDepth
	}

	i = SkipSpace(b, i)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}

	for {
		i, err = skipValue(b, i, depth)
		if err != nil {
			return i, err
		}

		var more bool
		i, more, err = SkipComma(b, i, ']')
		if err != nil || !more {
			return i, err
		}
	}
}

// skipColon moves past the colon between a key and its value.
func skipColon(b []byte, i int) (int, error) {
	i = SkipSpace(b, i)
	if i >= len(b) || b[i] != ':' {
		return failAt(b, i, errColon)
	}
	return SkipSpace(b, i+1), nil
}

// SkipComma moves past the comma after a value, to the next one; more is false behind the closing
// bracket.
func SkipComma(b []byte, i int, closer byte) (next int, more bool, err error) {
	i = SkipSpace(b, i)
	if i >= len(b) {
		return i, false, errEnd
	}

	switch b[i] {
	case ',':
		return SkipSpace(b, i+1), true, nil
	case closer:
		return i + 1, false, nil
	}

	return i, false, errComma
}

// SkipSpace returns the index of the next byte at or after i that is not white space, or len(b).
func SkipSpace(b []byte, i int) int {
	for i < len(b) && b[i] <= ' ' && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

func skipLiteral(b []byte, i int, want string) (int, error) {
	if len(b)-i < len(want) || string(b[i:i+len(want)]) != want {
		return failAt(b, i, errValue)
	}
	return i + len(want), nil
}

// skipNumber moves past a number (RFC 8259, section 6).
func skipNumber(b []byte, i int) (int, error) {
	start := i
	if b[i] == '-' {
		i++
	}

	first := i
	i = skipDigits(b, i)
	if i == first {
		return failAt(b, start, errValue)
	}
	// JSON has no leading zeros: digits after one are not of the number, and fail as what follows it.
	if b[first] == '0' {
		i = first + 1
	}

	if i < len(b) && b[i] == '.' {
		first = i + 1
		i = skipDigits(b, first)
		if i == first {
			return failAt(b, i, errPoint)
		}
	}

	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}

		first = i
		i = skipDigits(b, i)
		if i == first {
			return failAt(b, i, errExponent)
		}
	}

	return i, nil
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' < 10 {
		i++
	}
	return i
}

// skipString checks the string whose opening quote is b[i], the name of a member if there is none, and
// returns the index after its closing quote.
func skipString(b []byte, i int) (int, error) {
	if i >= len(b) || b[i] != '"' {
		return failAt(b, i, errName)
	}

	i++
	for {
		i = indexSpecial(b, i)
		if i >= len(b) || b[i] < ' ' {
			return failAt(b, i, errControl)
		}
		if b[i] == '"' {
			return i + 1, nil
		}

		n := EscapeLen(b[i:])
		if n == 0 {
			return failAt(b, i, errEscape)
		}

		i += n
	}
}

// indexSpecial returns the index of the next quote, backslash or control character at or
// after i, or len(b). It checks eight bytes at a time.
func indexSpecial(b []byte, i int) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		w := binary.LittleEndian.Uint64(b[i:])
		quote, slash := w^('"'*ones), w^('\\'*ones)

		// Each term has the high bit of a byte set when the byte is zero (below
		// 0x20 in the third); a borrow can only set bits above the first true one.
		hit := ((quote-ones)&^quote | (slash-ones)&^slash | (w-0x20*ones)&^w) & highs
		if hit != 0 {
			return i + bits.TrailingZeros64(hit)/8
		}
	}

	for i < len(b) && b[i] != '"' && b[i] != '\\' && b[i] >= ' ' {
		i++
	}

	return i
}

// EscapeLen returns the length of the escape sequence at the start of b, with its backslash; 0 if
// there is none.
func EscapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}

	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := parseHex4(b[2:]); ok {
			return 6
		}
	}

	return 0
}

func parseHex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}

	for _, c := range b[:4] {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			// From left to right: in Go | has the precedence of + and -.
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}

		r = r<<4 | rune(c)
	}

	return r, true
}
