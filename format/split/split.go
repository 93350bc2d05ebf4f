// Package split splits HTTP bodies into records without building values: records are
// passed on unchanged, after a check of JSON grammar, nesting and UTF-8. The sources'
// own encodings build on it.
package split

import (
	"bytes"
	"errors"

	"trunkline/internal/fault"
)

// Limits of a record. They are not configurable: clients rely on them.
const (
	MaxRecord = 1 << 20 // bytes
	MaxDepth  = 100     // maximum nesting of arrays and objects
)

// Sink receives the records of a body in order; at is the offset of the record in the
// body, for error messages.
type Sink func(record []byte, at int) error

// Splitter splits a body into records. Its own errors are *Error; it returns an error
// of the sink unchanged and stops.
type Splitter func(body []byte, emit Sink) error

// Error reports the position of a malformed body and the reason.
type Error struct {
	offset int // offset in the body
	kind   fault.Kind
	reason string
}

func (e *Error) Error() string { return e.reason }

// Refuse returns an error of the kind at an offset of the body.
func Refuse(at int, kind fault.Kind, reason string) error { return &Error{at, kind, reason} }

// Malformed returns the error for a body that does not conform to its media type.
func Malformed(at int, reason string) error { return &Error{at, fault.KindInvalid, reason} }

// RecordTooLarge returns the error for a record larger than MaxRecord.
func RecordTooLarge(at int) error {
	return &Error{at, fault.KindTooLarge, "a record is over 1 MiB"}
}

// WithLine converts an *Error to a fault that names the line of the text; it returns
// other errors unchanged.
func WithLine(err error, text []byte) error {
	var split *Error
	if !errors.As(err, &split) {
		return err
	}
	line := 1 + bytes.Count(text[:split.offset], []byte("\n"))
	return fault.New(split.kind, "Line %d: %s", line, split.reason)
}
