// Package split splits HTTP bodies into records without building values: records are
// passed on unchanged, after a check of JSON grammar, nesting and UTF-8. The sources'
// own encodings build on it.
package split

import (
	"bytes"
	"errors"

	"trunkline/internal/fault"
	"trunkline/internal/jsonscan"
)

// Limits of a record. They are not configurable: clients rely on them.
const (
	MaxRecord = 1 << 20           // bytes
	MaxDepth  = jsonscan.MaxDepth // maximum nesting of arrays and objects
)

// Sink receives the records of a body in order.
type Sink struct {
	// MemberKeys are the members whose values are in their slots of MemberValues when Take is called, nil where the
	// record has none. Nil MemberKeys need no MemberValues.
	MemberKeys   jsonscan.Keys
	MemberValues []jsonscan.Value
	// Take takes a record. at is its offset in the body, for error messages.
	Take func(record []byte, at int) error
}

// TakeBuilt takes a record that was built from what stands at an offset of the body: valid UTF-8.
func (s Sink) TakeBuilt(record []byte, at int) error {
	clear(s.MemberValues)
	_, err := s.MemberKeys.ScanAt(record, 0, s.MemberValues)
	if err != nil {
		return malformedJSON(at, err)
	}
	return s.Take(record, at)
}

// Splitter splits a body into records. Its own errors are *Error; it returns an error
// of the sink unchanged and stops.
type Splitter func(body []byte, to Sink) error

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
