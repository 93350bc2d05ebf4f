package normalizer

import (
	"errors"
	"fmt"

	"trunkline/internal/jsonscan"
)

// Kind says why a record became a dead letter. Kinds are bounded: they are a
// metric label and the error_kind header.
type Kind string

// The kinds.
const (
	InvalidJSON    Kind = "invalid_json"    // no JSON
	InvalidUTF8    Kind = "invalid_utf8"    // JSON's text must be UTF-8
	TooDeep        Kind = "too_deep"        // nested over jsonscan.MaxDepth
	TooLarge       Kind = "too_large"       // its message would not fit the topic
	WrongType      Kind = "wrong_type"      // no object, or a field of another type
	MissingField   Kind = "missing_field"   // a field the format cannot do without
	OutOfRange     Kind = "out_of_range"    // a clock or duration that cannot be
	UnknownFormat  Kind = "unknown_format"  // the format header names none of this topic
	UnknownType    Kind = "unknown_type"    // type of "generic" is not the specification's
	UnknownAccount Kind = "unknown_account" // names an account that does not exist
	Unrecognised   Kind = "unrecognised"    // no format header, and keys that tell nothing
	NoAccount      Kind = "no_account"      // neither the record nor its key names one
	Internal       Kind = "internal"        // our own fault: normalizing it panicked, or failed maxFailures times
)

var kinds = [...]Kind{
	InvalidJSON, InvalidUTF8, TooDeep, TooLarge, WrongType, MissingField, OutOfRange,
	UnknownFormat, UnknownType, UnknownAccount, Unrecognised, NoAccount, Internal,
}

// Rejection is why a record cannot be normalized. Reason names the field; it
// never holds the record's content.
type Rejection struct {
	Kind   Kind
	Reason string
}

func (r *Rejection) Error() string { return r.Reason }

func reject(kind Kind, format string, args ...any) *Rejection {
	return &Rejection{kind, fmt.Sprintf(format, args...)}
}

func wrongType(field, want string) *Rejection {
	return reject(WrongType, "%s: want %s", field, want)
}

func missing(field string) *Rejection { return reject(MissingField, "%s: missing", field) }

func outOfRange(field string) *Rejection { return reject(OutOfRange, "%s: out of range", field) }

// scanRejection is the rejection for an error of jsonscan.Scan.
func scanRejection(err error) *Rejection {
	kind := InvalidJSON
	switch {
	case errors.Is(err, jsonscan.ErrUTF8):
		kind = InvalidUTF8
	case errors.Is(err, jsonscan.ErrDepth):
		kind = TooDeep
	case errors.Is(err, jsonscan.ErrNotObject):
		kind = WrongType
	}
	return reject(kind, "%v", err)
}
