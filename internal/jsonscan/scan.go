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
	ErrDepth     = errors.New("nested too deeply")
	ErrNotObject = errors.New("not a JSON object")
)

// SyntaxError is an ErrSyntax with what is wrong at the offset that comes with it.
type SyntaxError struct{ Reason string }

// Error implements error; the reason is in Reason alone.
func (e *SyntaxError) Error() string { return ErrSyntax.Error() }

// Unwrap makes it an ErrSyntax.
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// What can be wrong.
var (
	errEnd      = &SyntaxError{"the JSON ends early"}
	errValue    = &SyntaxError{"not a JSON value"}
	errName     = &SyntaxError{"a member's name is missing"}
	errColon    = &SyntaxError{"a colon is missing"}
	errComma    = &SyntaxError{"a comma is missing"}
	errEscape   = &SyntaxError{"a string has an unknown escape"}
	errControl  = &SyntaxError{"a string has a control character"}
	errPoint    = &SyntaxError{"a number has no digits after its point"}
	errExponent = &SyntaxError{"a number has no digits in its exponent"}
)

// failAt returns the error at an offset, errEnd at the end of the input. Inlined it would make what
// scans slower.
//
//go:noinline
func failAt(b []byte, i int, err *SyntaxError) (int, error) {
	if i >= len(b) {
		err = errEnd
	}
	return i, err
}

// Keys maps the requested members to their index in Scan's result. Several keys may
// share an index.
type Keys map[string]int

// LastElement, added to an index in Keys, keeps only the last element of an array
// value, nil for an empty one; other values are kept unchanged.
const LastElement = 1 << 16

// WithSecondSlot returns the value in Keys of a member that is stored in a second slot too, which must
// not be 0: there as it stands, without LastElement.
func WithSecondSlot(slot, second int) int { return slot | second<<secondShift }

// Slot returns the slot of a value in Keys.
func Slot(value int) int { return value & slotMask }

// What a value in Keys consists of.
const (
	slotMask    = LastElement - 1
	secondShift = 17
)

// KeysOf numbers the names in order.
func KeysOf(names ...string) Keys {
	k := make(Keys, len(names))
	for i, name := range names {
		k[name] = i
	}
	return k
}

// Scan checks that record is one JSON object and stores the values of the members in k
// in their slots of dst. It leaves the other slots unchanged. After an error the
// content of dst is undefined.
func (k Keys) Scan(record []byte, dst []Value) error {
	if !utf8.Valid(record) {
		return ErrUTF8
	}
	end, err := k.ScanAt(record, SkipSpace(record, 0), dst)
	// A value that is no object may still be followed by garbage, which is the graver error.
	syntax := err == nil || errors.Is(err, ErrNotObject)
	if syntax && SkipSpace(record, end) != len(record) {
		return ErrSyntax
	}
	return err
}

// ScanAt is Scan for the object at b[i], of which it returns the end. b must be valid UTF-8. With an
// error it returns the offset of the error, with ErrNotObject the end of the value.
func (k Keys) ScanAt(b []byte, i int, dst []Value) (end int, err error) {
	if i < len(b) && b[i] == '{' {
		return k.scanMembers(b, i+1, dst)
	}
	end, err = skipValue(b, i, 0)
	if err == nil {
		err = ErrNotObject
	}
	return end, err
}

// ScanObject stores the values of an object's members in k in their slots of dst, like
// Scan; if v is not an object it changes nothing. v must come from Scan, which has
// validated it.
func (k Keys) ScanObject(v Value, dst []Value) {
	if v.Kind() == Object {
		_, _ = k.scanMembers(v, 1, dst)
	}
}

// scanMembers reads the top-level members, from after the opening brace to after the
// closing one.
func (k Keys) scanMembers(b []byte, i int, dst []Value) (end int, err error) {
	i = SkipSpace(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}

	for {
		key := i
		i, err = skipString(b, i)
		if err != nil {
			return i, err
		}

		slot, requested := k.find(b[key:i])
		i, err = skipColon(b, i)
		if err != nil {
			return i, err
		}

		value := i
		if requested && slot&LastElement != 0 && i < len(b) && b[i] == '[' {
			var last Value
			last, i, err = scanLastElement(b, i+1)
			if err != nil {
				return i, err
			}
			dst[Slot(slot)] = last
		} else {
			i, err = skipValue(b, i, 1)
			if err != nil {
				return i, err
			}

			if requested {
				// With this capacity an append to the value does not write into the input behind it.
				dst[Slot(slot)] = Value(b[value:i:i])
			}
		}

		second := slot >> secondShift
		if requested && second != 0 {
			dst[second] = Value(b[value:i:i])
		}

		var more bool
		i, more, err = SkipComma(b, i, '}')
		if err != nil || !more {
			return i, err
		}
	}
}

// scanLastElement checks a top-level array, from after its opening bracket to after
// the closing one, and returns its last element.
func scanLastElement(b []byte, i int) (last Value, end int, err error) {
	i = SkipSpace(b, i)
	if i < len(b) && b[i] == ']' {
		return nil, i + 1, nil
	}

	for {
		start := i
		i, err = skipValue(b, i, 2)
		if err != nil {
			return nil, i, err
		}

		last = Value(b[start:i:i])
		var more bool
		i, more, err = SkipComma(b, i, ']')
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
