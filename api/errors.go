package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// Kinds that only HTTP knows.
const (
	kindMethod fault.Kind = "method" // the path exists, and does not take the method
	kindLeft   fault.Kind = "left"   // the client left, and nobody reads the answer
)

// statusLeft is nginx's number for it: no fault of the server's.
const statusLeft = 499

// statuses is the one table from kinds of error to HTTP (contract, "Errors").
var statuses = map[fault.Kind]int{
	fault.KindInvalid:         http.StatusBadRequest,
	fault.KindUnauthenticated: http.StatusUnauthorized,
	fault.KindForbidden:       http.StatusForbidden,
	fault.KindNotFound:        http.StatusNotFound,
	kindMethod:                http.StatusMethodNotAllowed,
	kindLeft:                  statusLeft,
	fault.KindConflict:        http.StatusConflict,
	fault.KindGone:            http.StatusGone,
	fault.KindPrecondition:    http.StatusPreconditionFailed,
	fault.KindTooLarge:        http.StatusRequestEntityTooLarge,
	fault.KindUnsupported:     http.StatusUnsupportedMediaType,
	fault.KindRange:           http.StatusRequestedRangeNotSatisfiable,
	fault.KindUnprocessable:   http.StatusUnprocessableEntity,
	fault.KindUpgrade:         http.StatusUpgradeRequired,
	fault.KindLimited:         http.StatusTooManyRequests,
	fault.KindInternal:        http.StatusInternalServerError,
	fault.KindRefused:         http.StatusBadGateway,
	fault.KindUnavailable:     http.StatusServiceUnavailable,
}

// failure is the body of every error.
type failure struct {
	Success bool          `json:"success"`
	Message string        `json:"message"`
	Errors  []fault.Field `json:"errors,omitempty"`
}

// writeError answers err. What is ours to mend is logged with its cause, which
// the caller never sees.
func (a *API) writeError(c echo.Context, err error) {
	f := faultOf(err)
	if errors.Is(c.Request().Context().Err(), context.Canceled) {
		f = fault.New(kindLeft, "The client left")
	}
	status, ok := statuses[f.Kind]
	if !ok {
		status = http.StatusInternalServerError
	}
	header := c.Response().Header()
	switch f.Kind {
	case fault.KindUnauthenticated:
		header.Set("WWW-Authenticate", "Bearer")
	case fault.KindLimited, fault.KindUnavailable:
		header.Set("Retry-After", strconv.FormatInt(retrySeconds(f.RetryAfter), 10))
	}
	a.logFailure(c, status, f, err)
	if err := writeJSON(c, status, failure{Message: f.Message, Errors: f.Fields}); err != nil {
		a.log.DebugContext(c.Request().Context(), "the answer did not reach the client", "request_id", requestID(c), "error", err)
	}
}

// logFailure logs what somebody can do something about: our own faults, and what
// we need being away. Overload that we refuse ourselves has no cause, and is in
// the metrics.
func (a *API) logFailure(c echo.Context, status int, f *fault.Error, err error) {
	level := slog.LevelWarn
	switch {
	case status == http.StatusInternalServerError:
		level = slog.LevelError
	case status < http.StatusInternalServerError, f.Cause == nil:
		return
	}
	a.log.Log(c.Request().Context(), level, "request failed",
		"request_id", requestID(c), "route", routeOf(c), "kind", f.Kind, "error", err)
}

// retrySeconds rounds up: who comes back early is only refused again.
func retrySeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// faultOf is the fault in err: a room's, the router's, or ours.
func faultOf(err error) *fault.Error {
	var f *fault.Error
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return fault.NotFound("No such path")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return fault.New(kindMethod, "This path does not take this method")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Unavailable(err, time.Second, "The request took too long")
	default:
		return fault.Internal(err, "Internal error")
	}
}
