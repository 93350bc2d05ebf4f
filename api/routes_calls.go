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
func (r callRoutes) originate(c echo.Context, caller *identity.Principal) error {
	destination, err := lastSegment(c)
	if err != nil {
		return err
	}
	callID, err := r.calls.Originate(c.Request().Context(), caller, destination, c.Request().Header.Get("Idempotency-Key"))
	return respond(c, http.StatusCreated, struct {
		CallID string `json:"origination_call_id"`
	}{callID}, err)
}

// lastSegment returns the last segment of the path, percent-decoded once: a destination
// or a call id.
func lastSegment(c echo.Context) (string, error) {
	escaped := c.Request().URL.EscapedPath()
	segment, err := url.PathUnescape(escaped[strings.LastIndexByte(escaped, '/')+1:])
	if err != nil {
		return "", fault.Invalid("The path is not URL-encoded")
	}
	return segment, nil
}

func (r callRoutes) progress(c echo.Context, caller *identity.Principal) error {
	callID, err := lastSegment(c)
	if err != nil {
		return err
	}
	call, err := r.calls.Get(c.Request().Context(), caller, callID)
	return respond(c, http.StatusOK, call, err)
}

func (r callRoutes) cancel(c echo.Context, caller *identity.Principal) error {
	callID, err := lastSegment(c)
	if err != nil {
		return err
	}
	if err := r.calls.Cancel(c.Request().Context(), caller, callID); err != nil {
		return err
	}
	c.Response().WriteHeader(http.StatusAccepted)
	return nil
}
