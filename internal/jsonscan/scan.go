package jsonscan

import (
	"errors"
	"unicode/utf8"
)

// MaxDepth is the maximum nesting depth of objects and arrays; the top-level
// object is 1.
const MaxDepth = 100

// What Scan answers for bytes that are not an object it takes.
var (
	ErrSyntax    = errors.New("not valid JSON")
	ErrUTF8      = errors.New("not valid UTF-8")
	ErrDepth     = errors.New("nested too deep")
	ErrNotObject = errors.New("not a JSON object")
)

// Keys says which members are wanted, and at which index of Scan's result each
// goes. Several keys may share an index.
type Keys map[string]int

// LastElement, added to an index of Keys, keeps only the last element of a value
// that is an array, nil for an empty one; other values are kept as they are.
const LastElement = 1 << 16

// KeysOf numbers the names in order.
func KeysOf(names ...string) Keys {
	k := make(Keys, len(names))
	for i, name := range names {
		k[name] = i
	}
	return k
}

// Scan checks that record is one JSON object and puts the values of the
// members in k into the slots of into that k names; the others it leaves as
// they are. On an error the content of into is undefined.
func (k Keys) Scan(record []byte, into []Value) error {
	if !utf8.Valid(record) {
		return ErrUTF8
	}
	i := space(record, 0)
	if i == len(record) || record[i] != '{' {
		end, err := skip(record, i, 0)
		if err == nil && space(record, end) == len(record) {
			return ErrNotObject
		}
		return worse(err)
	}
	end, err := k.members(record, i+1, into)
	if err != nil {
		return err
	}
	if space(record, end) != len(record) {
		return ErrSyntax
	}
	return nil
}

// Within puts the values of the members in k of an object into the slots of into,
// as Scan does; where v is no object it leaves them as they are. v comes from Scan,
// which has checked it.
func (k Keys) Within(v Value, into []Value) {
	if v.Kind() == Object {
		_, _ = k.members(v, 1, into)
	}
}

func worse(err error) error {
	if err == nil {
		return ErrSyntax
	}
	return err
}

// members reads the top-level members, from behind the opening brace to behind
// the closing one.
func (k Keys) members(b []byte, i int, into []Value) (end int, err error) {
	i = space(b, i)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for {
		key := i
		if i, err = name(b, i); err != nil {
			return 0, err
		}
		slot, wanted := k.find(b[key:i])
		if i, err = colon(b, i); err != nil {
			return 0, err
		}
		value := i
		if wanted && slot >= LastElement && i < len(b) && b[i] == '[' {
			var last Value
			if last, i, err = scanLastElement(b, i+1); err != nil {
				return 0, err
			}
			into[slot-LastElement] = last
		} else {
			if i, err = skip(b, i, 1); err != nil {
				return 0, err
			}
			if wanted {
				into[slot&^LastElement] = Value(b[value:i:i])
			}
		}
		var more bool
		if i, more, err = comma(b, i, '}'); err != nil || !more {
			return i, err
		}
	}
}

// scanLastElement checks a top-level array, from behind its opening bracket to behind
// the closing one, and returns its last element.
func scanLastElement(b []byte, i int) (last Value, end int, err error) {
	if i = space(b, i); i < len(b) && b[i] == ']' {
		return nil, i + 1, nil
	}
	for {
		start := i
		if i, err = skip(b, i, 2); err != nil {
			return nil, 0, err
		}
		last = Value(b[start:i:i])
		var more bool
		if i, more, err = comma(b, i, ']'); err != nil || !more {
			return last, i, err
		}
	}
}

// find looks up a key as it stands in the input, quotes included.
func (k Keys) find(quoted []byte) (slot int, ok bool) {
	if len(k) == 0 {
		return 0, false
	}
	slot, ok = k[string(Value(quoted).plain())]
	return slot, ok
}
