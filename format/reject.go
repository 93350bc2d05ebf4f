package format

import "fmt"

// Kind is the reason why a record became a dead letter. Kinds are bounded: they
// are a metric label and the error_kind header.
type Kind string

// The kinds for which a format rejects a record.
const (
	InvalidJSON  Kind = "invalid_json"  // no JSON
	InvalidUTF8  Kind = "invalid_utf8"  // JSON's text must be UTF-8
	TooDeep      Kind = "too_deep"      // nested over jsonscan.MaxDepth
	WrongType    Kind = "wrong_type"    // no object, or a field of another type
	MissingField Kind = "missing_field" // a field the format cannot do without
	OutOfRange   Kind = "out_of_range"  // a clock or duration that cannot be, a text that cannot be stored
	UnknownType  Kind = "unknown_type"  // type of "generic" is not one of event.Types
)

// Kinds lists the kinds for which a format rejects a record.
func Kinds() []Kind {
	return []Kind{InvalidJSON, InvalidUTF8, TooDeep, WrongType, MissingField, OutOfRange, UnknownType}
}

// Rejection is why a record cannot be normalized. Reason names the field; it
// never holds the record's content.
type Rejection struct {
	Kind   Kind
	Reason string
}

func (r *Rejection) Error() string { return r.Reason }

// Rejectf returns a rejection with a formatted reason.
func Rejectf(kind Kind, format string, args ...any) *Rejection {
	return &Rejection{kind, fmt.Sprintf(format, args...)}
}

// RejectType rejects a field of another type than want.
func RejectType(field, want string) *Rejection {
	return Rejectf(WrongType, "%s: want %s", field, want)
}

// RejectMissing rejects a record without a field it cannot do without.
func RejectMissing(field string) *Rejection { return Rejectf(MissingField, "%s: missing", field) }

// RejectRange rejects a field with an impossible value.
func RejectRange(field string) *Rejection { return Rejectf(OutOfRange, "%s: out of range", field) }
