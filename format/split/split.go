// Package split cuts HTTP bodies into records without building values: a record
// is passed on as the bytes it came in, after a check of JSON's grammar, of
// nesting and of UTF-8. The sources' own encodings build on it.
package split

import (
	"bytes"
	"errors"

	"trunkline/internal/fault"
)

// Limits of a record. They are not settings: clients rely on them.
const (
	MaxRecord = 1 << 20 // bytes
	MaxDepth  = 100     // arrays and objects within each other
)

// Sink receives a body's records one by one, in order; at is where in the body
// the record begins, for messages.
type Sink func(record []byte, at int) error

// Splitter cuts a body into records. Its own errors are *Error; an error of the
// sink ends the work and is returned as it is.
type Splitter func(body []byte, emit Sink) error

// Error reports the position of a malformed body and the reason.
type Error struct {
	at     int // offset in the body
	kind   fault.Kind
	reason string
}

func (e *Error) Error() string { return e.reason }

// Refuse returns the error for a body with a fault of the kind at the offset.
func Refuse(at int, kind fault.Kind, reason string) error { return &Error{at, kind, reason} }

// Malformed returns the error for a body that is not what its media type says.
func Malformed(at int, reason string) error { return &Error{at, fault.KindInvalid, reason} }

// RecordTooLarge returns the error for a record over MaxRecord.
func RecordTooLarge(at int) error {
	return &Error{at, fault.KindTooLarge, "a record is over 1 MiB"}
}

// WithLine turns an *Error into a fault that names the line of the text it
// happened in; other errors stay what they are.
func WithLine(err error, text []byte) error {
	var split *Error
	if !errors.As(err, &split) {
		return err
	}
	line := 1 + bytes.Count(text[:split.at], []byte("\n"))
	return fault.New(split.kind, "Line %d: %s", line, split.reason)
}
