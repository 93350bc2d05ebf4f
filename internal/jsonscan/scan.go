package jsonscan

import (
	"errors"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting depth of objects and arrays; the top-level
// object is 1.
const MaxDepth = 100

// Errors of Scan.
var (
	ErrSyntax    = errors.New("not valid JSON")
	ErrUTF8      = errors.New("not valid UTF-8")
	ErrDepth     = errors.New("nested too deep")
	ErrNotObject = errors.New("not a JSON object")
)

// Keys maps the requested members to their index in Scan's result. Several keys may
// share an index.
type Keys map[string]int

// LastElement, added to an index in Keys, keeps only the last element of an array
// value, nil for an empty one; other values are kept unchanged.
const LastElement = 1 << 16

// KeysOf numbers the names in order.
func KeysOf(names ...string) Keys {
	k := make(Keys, len(names))
	for i, name := range names {
		k[name] = i
	}
	return k
}

// Scan checks that record is one JSON object and stores the values of the members in k
// in their slots of into. It leaves the other slots unchanged. After an error the
// content of into is undefined.
func (k Keys) Scan(record []byte, dst []Value) error {
	if !utf8.Valid(record) {
		return ErrUTF8
	}
	i := skipSpace(record, 0)
	if i == len(record) || record[i] != '{' {
		end, err := skipValue(record, i, 0)
		if err == nil && skipSpace(record, end) == len(record) {
			return ErrNotObject
		}
		return orSyntaxError(err)
	}
	end, err := k.scanMembers(record, i+1, dst)
	if err != nil {
		return err
	}
	if skipSpace(record, end) != len(record) {
		return ErrSyntax
	}
	return nil
}

// ScanObject stores the values of an object's members in k in their slots of into, like
// Scan; if v is not an object it changes nothing. v must come from Scan, which has
// validated it.
func (k Keys) ScanObject(v Value, dst []Value) {
	if v.Kind() == Object {
		_, _ = k.scanMembers(v, 1, dst)
	}
}

func orSyntaxError(err error) error {
	if err == nil {
		return ErrSyntax
	}
	return err
}

// scanMembers reads the top-level members, from after the opening brace to after the
// closing one.
func (k Keys) scanMembers(b []byte, i int, dst []Value) (end int, err error) {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		key := i
		i, err = skipString(b, i)
		if err != nil {
			return 0, err
		}
		slot, requested := k.find(b[key:i])
		i, err = skipColon(b, i)
		if err != nil {
			return 0, err
		}
		value := i
		if requested && slot >= LastElement && i < len(b) && b[i] == '[' {
			var last Value
			last, i, err = scanLastElement(b, i+1)
			if err != nil {
				return 0, err
			}
			dst[slot-LastElement] = last
		} else {
			i, err = skipValue(b, i, 1)
			if err != nil {
				return 0, err
			}
			if requested {
				dst[slot&^LastElement] = Value(b[value:i:i])
			}
		}
		var more bool
		i, more, err = skipComma(b, i, '}')
		if err != nil || !more {
			return i, err
		}
	}
}

// scanLastElement checks a top-level array, from after its opening bracket to after
// the closing one, and returns its last element.
func scanLastElement(b []byte, i int) (last Value, end int, err error) {
	i = skipSpace(b, i)
	if i < len(b) && b[i] == ']' {
		return nil, i + 1, nil
	}
	for {
		start := i
		i, err = skipValue(b, i, 2)
		if err != nil {
			return nil, 0, err
		}
		last = Value(b[start:i:i])
		var more bool
		i, more, err = skipComma(b, i, ']')
		if err != nil || !more {
			return last, i, err
		}
	}
}

// find looks up a key in its raw form, including quotes.
func (k Keys) find(quoted []byte) (slot int, ok bool) {
	if len(k) == 0 {
		return 0, false
	}
	slot, ok = k[string(Value(quoted).unquote())]
	return slot, ok
}
