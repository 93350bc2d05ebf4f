package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/origination"
)

// Calls places, reads and cancels calls (click to call).
type Calls interface {
	// Originate rings the caller's own extension and dials the destination once it is answered.
	// callID is the origination_call_id, or "" if the platform gave none. Requests of a user with
	// the same idempotencyKey ("" for none) within a day place one call and get the same response.
	Originate(ctx context.Context, caller *identity.Principal,
		destination, idempotencyKey string) (callID string, err error)
	// Get returns the progress of a call. The error is fault.NotFound for a call of an account that
	// the caller may not see.
	Get(ctx context.Context, caller *identity.Principal, callID string) (*origination.Call, error)
	// Cancel ends a call on behalf of its owner or an administrator. It may return before the call
	// has ended: a call of another node is cancelled by that node. The error is fault.Conflict for
	// a call that has ended.
	Cancel(ctx context.Context, caller *identity.Principal, callID string) error
}

type callRoutes struct {
	calls Calls
	auth  auth
}

// handleOriginate places a call that rings the caller's phone first. Calls refuses an API key,
// which has no extension.
func (r callRoutes) handleOriginate(c echo.Context, caller *identity.Principal) error {
	callID, err := r.calls.Originate(c.Request().Context(), caller, c.Param("destination"),
		c.Request().Header.Get("Idempotency-Key"))
	return respond(c, http.StatusCreated, struct {
		CallID string `json:"origination_call_id"`
	}{callID}, err)
}

func (r callRoutes) handleProgress(c echo.Context, caller *identity.Principal) error {
	call, err := r.calls.Get(c.Request().Context(), caller, c.Param("origination_call_id"))
	return respond(c, http.StatusOK, call, err)
}

func (r callRoutes) handleCancel(c echo.Context, caller *identity.Principal) error {
	if err := r.calls.Cancel(c.Request().Context(), caller, c.Param("origination_call_id")); err != nil {
		return err
	}
	c.Response().WriteHeader(http.StatusAccepted)
	return nil
}

func (r callRoutes) routes() []route {
	const clickToCall, call = "/ucp/v2/c2c/", "/api/v2/calls/:origination_call_id"
	return []route{
		// without a destination: 400
		{method: http.MethodPost, path: clickToCall, handle: authorized(r.auth.authenticateAny, r.handleOriginate),
			also: limitedRoles, scope: identity.ScopeCalls},
		{method: http.MethodPost, path: clickToCall + ":destination",
			handle: authorized(r.auth.authenticateAny, r.handleOriginate), also: limitedRoles,
			scope: identity.ScopeCalls},
		{method: http.MethodGet, path: call, handle: authorized(r.auth.authenticateAny, r.handleProgress),
			also: limitedRoles, scope: identity.ScopeCalls},
		{method: http.MethodDelete, path: call, handle: authorized(r.auth.authenticateAny, r.handleCancel),
			also: limitedRoles, scope: identity.ScopeCalls},
	}
}
