// Package fault gives every error its kind once, where it is born. Rooms
// return faults; the api room turns kinds into HTTP answers in one table, and
// consumers decide by kind whether to retry, to dead-letter or to close.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind says what sort of thing went wrong. Kinds are bounded: they are used as
// metric labels and in dead letters.
type Kind string

// The kinds, and the HTTP status the api room answers for each.
const (
	KindInvalid         Kind = "invalid"         // 400
	KindUnauthenticated Kind = "unauthenticated" // 401
	KindForbidden       Kind = "forbidden"       // 403
	KindNotFound        Kind = "not_found"       // 404
	KindConflict        Kind = "conflict"        // 409
	KindGone            Kind = "gone"            // 410
	KindPrecondition    Kind = "precondition"    // 412
	KindTooLarge        Kind = "too_large"       // 413
	KindUnsupported     Kind = "unsupported"     // 415
	KindRange           Kind = "range"           // 416
	KindUnprocessable   Kind = "unprocessable"   // 422
	KindUpgrade         Kind = "upgrade"         // 426
	KindLimited         Kind = "limited"         // 429, RetryAfter
	KindInternal        Kind = "internal"        // 500
	KindRefused         Kind = "refused"         // 502, the platform said no
	KindUnavailable     Kind = "unavailable"     // 503, RetryAfter
)

// Field is one field's fault, as it appears in an error body's "errors".
type Field struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error is an error with a kind. Message is for the caller of the service: it
// never holds a secret, a query or a wrapped error's text.
type Error struct {
	Kind       Kind
	Message    string
	Fields     []Field
	RetryAfter time.Duration // KindLimited, KindUnavailable
	Cause      error         // for the log only
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Message + ": " + e.Cause.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes an error of the kind.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Invalid is a bad request; the fields say what is wrong with each.
func Invalid(message string, fields ...Field) *Error {
	return &Error{Kind: KindInvalid, Message: message, Fields: fields}
}

// InvalidField is a bad request with one field to blame.
func InvalidField(field, code, message string) *Error {
	return Invalid(message, Field{field, code, message})
}

// NotFound is for what does not exist, or what the caller may not know exists.
func NotFound(format string, args ...any) *Error { return New(KindNotFound, format, args...) }

// Unauthenticated is for a missing, malformed, expired or revoked credential.
func Unauthenticated(message string) *Error { return New(KindUnauthenticated, "%s", message) }

// Forbidden is for a known caller who may not do this.
func Forbidden(message string) *Error { return New(KindForbidden, "%s", message) }

// Conflict is for what contradicts what is there.
func Conflict(format string, args ...any) *Error { return New(KindConflict, format, args...) }

// Unavailable is for something we need that is away; retry says when to come
// back.
func Unavailable(cause error, retry time.Duration, message string) *Error {
	return &Error{Kind: KindUnavailable, Message: message, RetryAfter: retry, Cause: cause}
}

// Limited is for too much, too fast.
func Limited(retry time.Duration, message string) *Error {
	return &Error{Kind: KindLimited, Message: message, RetryAfter: retry}
}

// Internal is a fault of ours; the caller sees only the message.
func Internal(cause error, message string) *Error {
	return &Error{Kind: KindInternal, Message: message, Cause: cause}
}

// As finds the fault in err's chain. An error without one is KindInternal.
func As(err error) *Error {
	var f *Error
	if errors.As(err, &f) {
		return f
	}
	return Internal(err, "internal error")
}

// KindOf is the kind of err; of nil it is "".
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return As(err).Kind
}
