package trunkline

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// Errors that a subscription ends with or reports; use errors.Is.
var (
	ErrGoingAway     = errors.New("the server received nothing for too long") // 1001
	ErrMisuse        = errors.New("the channel was misused")                  // 1008
	ErrServerFault   = errors.New("server fault, or events were lost")        // 1011
	ErrRestart       = errors.New("the server restarts")                      // 1012
	ErrTokenExpired  = errors.New("the token expired")                        // 4001
	ErrAccessRevoked = errors.New("access was revoked")                       // 4003
	ErrTooSlow       = errors.New("events were read too slowly")              // 4008
	ErrReplaced      = errors.New("replaced by a newer connection")           // 4009

	ErrPositionGone = errors.New("the log no longer has the events after the position") // 410
	ErrProtocol     = errors.New("the server sent what the protocol does not allow")
)

var closeErrors = map[int]error{
	1001: ErrGoingAway, 1008: ErrMisuse, 1011: ErrServerFault, 1012: ErrRestart,
	4001: ErrTokenExpired, 4003: ErrAccessRevoked, 4008: ErrTooSlow, 4009: ErrReplaced,
}

// CloseError is the end of a connection with a close code of the channel.
type CloseError struct {
	Code   int
	Reason string
}

func (e *CloseError) Error() string { return fmt.Sprintf("closed with %d: %s", e.Code, e.Reason) }

// Unwrap returns the error of the code, such as ErrRestart.
func (e *CloseError) Unwrap() error { return closeErrors[e.Code] }

// RefusedError is an HTTP response with a status other than 200.
type RefusedError struct {
	Step       string // "login", "snapshot" or "stream"
	Status     int
	Message    string // the server's, may be empty
	Fields     []FieldError
	RetryAfter time.Duration // 0: none
}

// FieldError is an error in one field of a request.
type FieldError struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%s refused: %d %s", e.Step, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns ErrPositionGone for 410.
func (e *RefusedError) Unwrap() error {
	if e.Status == http.StatusGone && e.Step != "login" {
		return ErrPositionGone
	}
	return nil
}

func newRefusal(step string, response *http.Response) *RefusedError {
	e := &RefusedError{Step: step, Status: response.StatusCode}
	var body struct {
		Message string       `json:"message"`
		Errors  []FieldError `json:"errors"`
	}

	// The body of a proxy's response may not be JSON: then only the status counts.
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes))
	if err == nil && json.Unmarshal(text, &body) == nil {
		e.Message, e.Fields = body.Message, body.Errors
	}

	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 16)
	if err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}

	return e
}

// Permanent reports whether a retry would fail in the same way. Subscribe ends with permanent
// errors only.
func Permanent(err error) bool {
	var (
		refused     *RefusedError
		certificate *tls.CertificateVerificationError
	)

	switch {
	case errors.Is(err, ErrMisuse), errors.Is(err, ErrAccessRevoked), errors.Is(err, ErrReplaced),
		errors.Is(err, ErrProtocol), errors.As(err, &certificate):
		return true
	case errors.As(err, &refused):
		expired := refused.Status == http.StatusUnauthorized && refused.Step != "login"
		return refused.Status < 500 && refused.Status != http.StatusTooManyRequests && !expired
	}

	return false
}
