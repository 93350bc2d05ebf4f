package format

import "fmt"

// Kind is the reason for a dead letter, from a bounded set: it is a metric label and
// the error_kind header.
type Kind string

// The kinds for which a format rejects a record.
const (
	InvalidJSON  Kind = "invalid_json"  // not JSON
	InvalidUTF8  Kind = "invalid_utf8"  // text must be UTF-8
	TooDeep      Kind = "too_deep"      // nested deeper than jsonscan.MaxDepth
	WrongType    Kind = "wrong_type"    // not an object, or a field of another type
	MissingField Kind = "missing_field" // a required field
	OutOfRange   Kind = "out_of_range"  // an impossible time or duration, or a text that cannot be stored
	UnknownType  Kind = "unknown_type"  // the type of "generic" is not one of event.Types
)

// Kinds lists the kinds for which a format rejects a record.
func Kinds() []Kind {
	return []Kind{InvalidJSON, InvalidUTF8, TooDeep, WrongType, MissingField, OutOfRange, UnknownType}
}

// Rejection is the reason for which a record cannot be normalized. Reason names the
// field; it never contains content of the record.
type Rejection struct {
	Kind   Kind
	Reason string
}

func (r *Rejection) Error() string { return r.Reason }

// Rejectf returns a rejection with a formatted reason.
func Rejectf(kind Kind, format string, args ...any) *Rejection {
	return &Rejection{kind, fmt.Sprintf(format, args...)}
}

// RejectType rejects a field whose type is not want.
func RejectType(field, want string) *Rejection {
	return Rejectf(WrongType, "%s: want %s", field, want)
}

// RejectMissing rejects a record without a required field.
func RejectMissing(field string) *Rejection { return Rejectf(MissingField, "%s: missing", field) }

// RejectRange rejects a field with an impossible value.
func RejectRange(field string) *Rejection { return Rejectf(OutOfRange, "%s: out of range", field) }
