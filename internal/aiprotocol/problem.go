package aiprotocol

import "fmt"

// Problem says what is wrong with a message. Problems are bounded: they are used
// as metric labels.
type Problem string

// The problems there are.
const (
	ProblemNotJSON Problem = "not_json"      // not one JSON object
	ProblemNoEvent Problem = "no_event"      // event is missing or no string
	ProblemUnknown Problem = "unknown_event" // also an extra that was not opted in to
	ProblemBody    Problem = "bad_body"      // the object named as the event is missing or none
	ProblemField   Problem = "bad_field"     // a field is missing, of another type or out of bounds
	ProblemBase64  Problem = "bad_base64"    // a payload that is not base64
	ProblemExtra   Problem = "unknown_field" // found by a strict decoder only
)

// Problems lists them all.
func Problems() []Problem {
	return []Problem{ProblemNotJSON, ProblemNoEvent, ProblemUnknown, ProblemBody, ProblemField, ProblemBase64, ProblemExtra}
}

// Error is what a decoder answers for a message it does not take. Its detail
// names fields and events, shortened, and never holds a field's value.
type Error struct {
	Problem Problem
	Detail  string
}

func (e *Error) Error() string { return e.Detail }

func newError(p Problem, format string, args ...any) *Error {
	return &Error{p, fmt.Sprintf(format, args...)}
}
