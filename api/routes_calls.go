package api

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
	"trunkline/origination"
)

// Calls places and follows calls (click to call).
type Calls interface {
	Originate(ctx context.Context, caller *identity.Principal, destination, idempotencyKey string) (callID string, err error)
	Get(ctx context.Context, caller *identity.Principal, callID string) (*origination.Call, error)
	Cancel(ctx context.Context, caller *identity.Principal, callID string) error
}

type callRoutes struct {
	calls Calls
	auth  auth
}

// originate rings the caller's phone. An API key is authenticated and then refused by
// Calls, since it has no extension.
func (r callRoutes) originate(c echo.Context) error {
	caller, destination, err := r.callerAndLastSegment(c)
	if err != nil {
		return err
	}
	callID, err := r.calls.Originate(c.Request().Context(), caller, destination, c.Request().Header.Get("Idempotency-Key"))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusCreated, struct {
		CallID string `json:"origination_call_id"`
	}{callID})
}

// callerAndLastSegment authenticates the caller. segment is the last one of the path,
// percent-decoded once: a destination or a call id.
func (r callRoutes) callerAndLastSegment(c echo.Context) (caller *identity.Principal, segment string, err error) {
	if caller, err = r.auth.authenticateAny(c); err != nil {
		return nil, "", err
	}
	escaped := c.Request().URL.EscapedPath()
	segment, err = url.PathUnescape(escaped[strings.LastIndexByte(escaped, '/')+1:])
	if err != nil {
		return nil, "", fault.Invalid("The path is not URL-encoded")
	}
	return caller, segment, nil
}

func (r callRoutes) progress(c echo.Context) error {
	caller, callID, err := r.callerAndLastSegment(c)
	if err != nil {
		return err
	}
	call, err := r.calls.Get(c.Request().Context(), caller, callID)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, call)
}

func (r callRoutes) cancel(c echo.Context) error {
	caller, callID, err := r.callerAndLastSegment(c)
	if err != nil {
		return err
	}
	if err := r.calls.Cancel(c.Request().Context(), caller, callID); err != nil {
		return err
	}
	c.Response().WriteHeader(http.StatusAccepted)
	return nil
}
