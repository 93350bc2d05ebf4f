// Package fault gives every error a kind where it is created. Packages return
// faults; package api maps kinds to HTTP responses in one table, and consumers
// decide by kind whether to retry, to dead-letter or to close.
package fault

import (
	"errors"
	"fmt"
	"time"
)

// Kind classifies an error. Kinds are bounded: they are used as metric labels
// and in dead letters.
type Kind string

// The kinds, and the HTTP status of each.
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
	KindRefused         Kind = "refused"         // 502, the platform rejected the request
	KindUnavailable     Kind = "unavailable"     // 503, RetryAfter
)

// Field is one field's fault, as it appears in an error body's "errors".
type Field struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error is an error with a kind. Message is for the client: it never contains a secret,
// a query or a wrapped error's text.
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

// New returns an error of the kind.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns an error of KindInvalid with a message for each field.
func Invalid(message string, fields ...Field) *Error {
	return &Error{Kind: KindInvalid, Message: message, Fields: fields}
}

// InvalidField returns an error of KindInvalid for one field.
func InvalidField(field, code, message string) *Error {
	return NewField(KindInvalid, field, code, message)
}

// NewField returns an error of the kind for one field.
func NewField(kind Kind, field, code, message string) *Error {
	return &Error{Kind: kind, Message: message, Fields: []Field{{field, code, message}}}
}

// NotFound returns an error of KindNotFound: the object does not exist, or the caller
// cannot access it.
func NotFound(format string, args ...any) *Error { return New(KindNotFound, format, args...) }

// Unauthenticated returns an error for a missing, malformed, expired or revoked
// credential.
func Unauthenticated(message string) *Error { return New(KindUnauthenticated, "%s", message) }

// Forbidden returns an error for an authenticated caller without permission.
func Forbidden(message string) *Error { return New(KindForbidden, "%s", message) }

// Conflict returns an error for a request that contradicts stored state.
func Conflict(format string, args ...any) *Error { return New(KindConflict, format, args...) }

// Unavailable returns an error for an unreachable dependency; retry is the time to wait
// before the next attempt.
func Unavailable(cause error, retry time.Duration, message string) *Error {
	return &Error{Kind: KindUnavailable, Message: message, RetryAfter: retry, Cause: cause}
}

// Limited returns an error for a request over a rate limit.
func Limited(retry time.Duration, message string) *Error {
	return &Error{Kind: KindLimited, Message: message, RetryAfter: retry}
}

// Internal returns an error of KindInternal; the caller sees only the message.
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

// IsUnavailable reports whether the same call may succeed later.
func IsUnavailable(err error) bool { return KindOf(err) == KindUnavailable }

// KindOf returns the kind of err; of nil it is "".
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	return As(err).Kind
}
