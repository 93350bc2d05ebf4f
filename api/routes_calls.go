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

// Calls is click to call.
type Calls interface {
	Originate(ctx context.Context, caller *identity.Principal, destination, idempotencyKey string) (callID string, err error)
	Get(ctx context.Context, caller *identity.Principal, callID string) (*origination.Call, error)
	Cancel(ctx context.Context, caller *identity.Principal, callID string) error
}

type callRoutes struct {
	calls Calls
	auth  auth
}

// originate rings the caller. An API key is somebody known who has no
// extension, which the room says.
func (r callRoutes) originate(c echo.Context) error {
	caller, err := r.auth.keyOrBearer(c)
	if err != nil {
		return err
	}
	destination, err := lastSegment(c.Request().URL)
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

// lastSegment is the path's last segment, decoded once: + is a plus, and %2F a
// slash in it.
func lastSegment(u *url.URL) (string, error) {
	escaped := u.EscapedPath()
	segment, err := url.PathUnescape(escaped[strings.LastIndexByte(escaped, '/')+1:])
	if err != nil {
		return "", fault.Invalid("The path is not URL-encoded")
	}
	return segment, nil
}

func (r callRoutes) progress(c echo.Context) error {
	caller, err := r.auth.keyOrBearer(c)
	if err != nil {
		return err
	}
	callID, err := lastSegment(c.Request().URL)
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
	caller, err := r.auth.keyOrBearer(c)
	if err != nil {
		return err
	}
	callID, err := lastSegment(c.Request().URL)
	if err != nil {
		return err
	}
	if err := r.calls.Cancel(c.Request().Context(), caller, callID); err != nil {
		return err
	}
	c.Response().WriteHeader(http.StatusAccepted)
	return nil
}
