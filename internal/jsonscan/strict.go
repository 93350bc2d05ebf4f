package jsonscan

import (
	"bytes"
	"errors"
	"slices"
	"unicode/utf8"
)

// Errors of Strict.Parse, in addition to those of Scan. A *RepeatedError is the only
// other one.
var (
	ErrTrailing = errors.New("data after the JSON value")
	ErrTooMany  = errors.New("too many values")
)

// RepeatedError means that an object has two members with this name.
type RepeatedError struct{ Name string }

// Error implements error.
func (e *RepeatedError) Error() string { return "repeated name " + e.Name }

// Strict checks input of untrusted clients. Apart from the names of the objects that are
// open at one place, of which it keeps slices, it needs no memory for the input's values.
type Strict struct {
	MaxDepth  int // of nested arrays and objects, at most the package's MaxDepth
	MaxValues int // in the whole input, names not counted
}

// Parse checks that input is one JSON value within the limits whose objects have no
// repeated names, and returns it with the number of its values.
func (s Strict) Parse(input []byte) (v Value, values int, err error) {
	if !utf8.Valid(input) {
		return nil, 0, ErrUTF8
	}

	w := structureWalk{limits: s}
	if err := w.run(input); err != nil {
		return nil, 0, err
	}

	start := SkipSpace(input, 0)
	end, err := skipValue(input, start, 0)
	if err != nil {
		return nil, 0, err
	}

	if SkipSpace(input, end) != len(input) {
		return nil, 0, ErrTrailing
	}

	return Value(input[start:end:end]), w.values, nil
}

// structureWalk counts depth and values and compares names. It does not recurse, so that
// it may run before anything is known about the input, and leaves the check of the syntax
// to skipValue.
type structureWalk struct {
	limits         Strict
	values         int
	openContainers []openContainer
	names          [][]byte // decoded, of the open objects, outermost first
}

type openContainer struct {
	object bool
	names  int // length of names when it was opened
}

func (w *structureWalk) run(b []byte) error {
	for i := SkipSpace(b, 0); i < len(b); i = SkipSpace(b, i) {
		var err error
		switch b[i] {
		case '{', '[':
			i, err = i+1, w.begin(b[i] == '{')
		case '}', ']':
			i, err = i+1, w.end()
		case ',', ':':
			i++
		case '"':
			i, err = w.readText(b, i)
		default:
			i, err = skipPlain(b, i), w.count()
		}

		if err != nil {
			return err
		}
	}

	return nil
}

func (w *structureWalk) count() error {
	w.values++
	if w.values > w.limits.MaxValues {
		return ErrTooMany
	}
	return nil
}

func (w *structureWalk) begin(object bool) error {
	if len(w.openContainers) == min(w.limits.MaxDepth, MaxDepth) {
		return ErrDepth
	}
	w.openContainers = append(w.openContainers, openContainer{object, len(w.names)})
	return w.count()
}

func (w *structureWalk) end() error {
	if len(w.openContainers) == 0 {
		return ErrSyntax
	}

	last := w.openContainers[len(w.openContainers)-1]
	w.openContainers = w.openContainers[:len(w.openContainers)-1]

	names := w.names[last.names:]
	w.names = w.names[:last.names]
	// Sorting needs no memory, unlike a set of the names of an object that a client chose.
	slices.SortFunc(names, bytes.Compare)

	for i := 1; i < len(names); i++ {
		if bytes.Equal(names[i-1], names[i]) {
			return &RepeatedError{string(names[i])}
		}
	}

	return nil
}

// readText handles the string at b[i]: a name if a colon follows it in an object. Names are
// not values, but have the same limit.
func (w *structureWalk) readText(b []byte, i int) (end int, err error) {
	end, err = skipString(b, i)
	if err != nil {
		return 0, err
	}

	colon := SkipSpace(b, end)
	isName := len(w.openContainers) > 0 && w.openContainers[len(w.openContainers)-1].object &&
		colon < len(b) && b[colon] == ':'
	if !isName {
		return end, w.count()
	}
	if len(w.names) == w.limits.MaxValues {
		return 0, ErrTooMany
	}

	w.names = append(w.names, Value(b[i:end]).unquote())
	return end, nil
}

// skipPlain returns the end of a number or literal, or of anything else that is not
// structure: at least i+1.
func skipPlain(b []byte, i int) int {
	end := bytes.IndexAny(b[i+1:], "{}[],:\" \n\t\r")
	if end < 0 {
		return len(b)
	}
	return i + 1 + end
}
