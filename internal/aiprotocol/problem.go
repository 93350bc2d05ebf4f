package aiprotocol

import "fmt"

// Problem is the kind of a message's error. The set is bounded: problems are used as metric labels.
type Problem string

// The problems.
const (
	ProblemNotJSON Problem = "not_json"      // not one JSON object
	ProblemNoEvent Problem = "no_event"      // event is missing or not a string
	ProblemUnknown Problem = "unknown_event" // includes extension events without opt-in
	ProblemBody    Problem = "bad_body"      // the event's object is missing or not an object
	ProblemField   Problem = "bad_field"     // a field is missing, has another type or is out of range
	ProblemBase64  Problem = "bad_base64"    // a payload that is not base64
	ProblemExtra   Problem = "unknown_field" // only from a strict decoder
)

// Problems returns all problems.
func Problems() []Problem {
	return []Problem{ProblemNotJSON, ProblemNoEvent, ProblemUnknown, ProblemBody, ProblemField, ProblemBase64,
		ProblemExtra}
}

// Error is the error of a message that was not decoded. Its detail names fields and events, shortened,
// and never contains a field's value.
type Error struct {
	Problem Problem
	Detail  string
}

func (e *Error) Error() string { return e.Detail }

// NewError returns the error of a message that was not decoded. The detail must not contain a field's
// value.
func NewError(p Problem, format string, args ...any) *Error {
	return &Error{p, fmt.Sprintf(format, args...)}
}
