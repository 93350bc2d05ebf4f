package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/audit"
	"trunkline/internal/fault"
)

// Kinds of errors that exist in HTTP only.
const (
	kindMethod       fault.Kind = "method" // the path does not support the method
	kindClientClosed fault.Kind = "left"   // the client closed the connection before the response
)

// statusClientClosed is the status "client closed request" of nginx.
const statusClientClosed = 499

// statuses maps kinds of error to HTTP statuses.
var statuses = map[fault.Kind]int{
	fault.KindInvalid:         http.StatusBadRequest,
	fault.KindUnauthenticated: http.StatusUnauthorized,
	fault.KindForbidden:       http.StatusForbidden,
	fault.KindNotFound:        http.StatusNotFound,
	kindMethod:                http.StatusMethodNotAllowed,
	kindClientClosed:          statusClientClosed,
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

// failure is the body of every error response.
type failure struct {
	Success bool          `json:"success"`
	Message string        `json:"message"`
	Errors  []fault.Field `json:"errors,omitempty"`
}

// writeError writes the response to a failed request. The cause of a fault is logged and
// never sent.
func (a *API) writeError(c echo.Context, err error) {
	f := toFault(err)
	// Whatever err is: most of what a handler calls fails after the client has left.
	if errors.Is(c.Request().Context().Err(), context.Canceled) {
		f = fault.New(kindClientClosed, "The client closed the connection")
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
	a.auditRefusal(c, f.Kind)
	if err := writeJSON(c, status, failure{Message: f.Message, Errors: f.Fields}); err != nil {
		a.log.DebugContext(c.Request().Context(), "error response not written", "request_id", requestID(c),
			"error", err)
	}
}

// auditRefusal writes to the audit log that somebody who is authenticated was refused, once a
// minute for the same caller, address and route.
func (a *API) auditRefusal(c echo.Context, kind fault.Kind) {
	caller := callerOf(c)
	if caller == nil || a.deps.Audit == nil || kind != fault.KindForbidden && kind != fault.KindUnauthenticated {
		return
	}
	ctx := c.Request().Context()
	entry := a.deps.Audit.Entry(ctx, audit.RequestRefused, caller.AccountID, methodLabel(c)+":"+routeLabel(c))
	entry.Actor, entry.Address, entry.Outcome = caller.Actor(), c.RealIP(), string(kind)
	a.deps.Audit.ReportOnce(ctx, entry)
}

// logFailure logs internal errors and unavailable dependencies. It does not log overload,
// which has no Cause: the package that refuses the request logs it.
func (a *API) logFailure(c echo.Context, status int, f *fault.Error, err error) {
	level := slog.LevelWarn
	switch {
	case status == http.StatusInternalServerError:
		level = slog.LevelError
	case status < http.StatusInternalServerError, f.Cause == nil:
		return
	}
	a.log.Log(c.Request().Context(), level, "request failed",
		"request_id", requestID(c), "route", routeLabel(c), "kind", f.Kind, "error", err)
}

// retrySeconds rounds d up to seconds, at least 1, because a client that retries too early
// would be refused again.
func retrySeconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// toFault returns the fault in err, or converts an error of the router, a timeout or any
// other error to one.
func toFault(err error) *fault.Error {
	var f *fault.Error
	var routing *echo.HTTPError
	switch {
	case errors.As(err, &f):
		return f
	case errors.As(err, &routing) && routing.Code == http.StatusNotFound:
		return fault.NotFound("No such path")
	case errors.As(err, &routing) && routing.Code == http.StatusMethodNotAllowed:
		return fault.New(kindMethod, "This path does not support this method")
	case errors.Is(err, context.DeadlineExceeded):
		return fault.Unavailable(err, time.Second, "The request took too long")
	default:
		return fault.Internal(err, "Internal error")
	}
}
