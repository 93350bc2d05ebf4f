package jsonscan

import (
	"bytes"
	"iter"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is one raw JSON value of the input; nil means absent.
type Value []byte

// Kind is a value's JSON type.
type Kind byte

// The kinds. None is the kind of an absent value.
const (
	None Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Kind returns v's type.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return None
	}

	switch v[0] {
	case '"':
		return String
	case '{':
		return Object
	case '[':
		return Array
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	}

	return Number
}

// Text returns a string's decoded content, a slice of the input if it has no escapes.
// ok is false for other kinds.
func (v Value) Text() (text []byte, ok bool) {
	if v.Kind() != String {
		return nil, false
	}
	return v.unquote(), true
}

// Is reports whether v is the string want.
func (v Value) Is(want string) bool {
	text, ok := v.Text()
	return ok && string(text) == want
}

// First returns the first element of an array, or nil.
func (v Value) First() Value {
	if v.Kind() != Array {
		return nil
	}
	i := SkipSpace(v, 1)
	end, err := skipValue(v, i, 0)
	if err != nil { // closing bracket: an empty array
		return nil
	}
	return v[i:end:end]
}

// FirstAndLast returns the first and the last element of an array, or nil. They are equal for
// an array of one element.
func (v Value) FirstAndLast() (first, last Value) {
	if v.Kind() != Array {
		return nil, nil
	}

	for i, more := SkipSpace(v, 1), true; more; {
		start := i
		end, err := skipValue(v, i, 0)
		if err != nil { // closing bracket: an empty array
			return nil, nil
		}

		last = v[start:end:end]
		if first == nil {
			first = last
		}

		i, more, err = SkipComma(v, end, ']')
		if err != nil {
			return nil, nil
		}
	}

	return first, last
}

// Last returns the last element of an array, or nil.
func (v Value) Last() (last Value) {
	_, last = v.FirstAndLast()
	return last
}

// Elements yields the elements of an array in order. v must come from Scan; otherwise
// it yields the elements before the first error.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.Kind() != Array {
			return
		}

		for i, more := SkipSpace(v, 1), true; more; {
			start := i
			end, err := skipValue(v, i, 0)
			if err != nil { // closing bracket: an empty array
				return
			}

			i, more, err = SkipComma(v, end, ']')
			if err != nil || !yield(v[start:end:end]) {
				return
			}
		}
	}
}

// Each calls f for every member of an object in order, with the decoded key. v must
// come from Scan; otherwise Each may do nothing.
func (v Value) Each(f func(key []byte, value Value)) {
	if v.Kind() != Object {
		return
	}

	i, more := SkipSpace(v, 1), true
	for more {
		start := i
		end, err := skipString(v, i)
		if err != nil {
			return
		}

		i, err = skipColon(v, end)
		if err != nil {
			return
		}

		value := i
		i, err = skipValue(v, i, 0)
		if err != nil {
			return
		}

		f(v[start:end].unquote(), v[value:i:i])
		i, more, err = SkipComma(v, i, '}')
		if err != nil {
			return
		}
	}
}

// unquote returns the content of a quoted, validated string.
func (v Value) unquote() []byte {
	content := v[1 : len(v)-1]
	slash := bytes.IndexByte(content, '\\')
	if slash < 0 {
		return content
	}

	out := append(make([]byte, 0, len(content)), content[:slash]...)
	for rest := content[slash:]; len(rest) > 0; {
		if rest[0] != '\\' {
			end := bytes.IndexByte(rest, '\\')
			if end < 0 {
				end = len(rest)
			}
			out, rest = append(out, rest[:end]...), rest[end:]
			continue
		}

		var n int
		out, n = unescape(out, rest)
		rest = rest[n:]
	}

	return out
}

// unescape appends the decoded escape sequence at the start of b and returns its
// length. Half a surrogate pair becomes U+FFFD, as in encoding/json.
func unescape(out, b []byte) ([]byte, int) {
	switch b[1] {
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		r, _ := parseHex4(b[2:])
		if !utf16.IsSurrogate(r) {
			return utf8.AppendRune(out, r), 6
		}

		if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			low, _ := parseHex4(b[8:])
			pair := utf16.DecodeRune(r, low)
			if pair != utf8.RuneError {
				return utf8.AppendRune(out, pair), 12
			}
		}

		return utf8.AppendRune(out, utf8.RuneError), 6
	}

	return append(out, b[1]), 2
}
