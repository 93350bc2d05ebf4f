package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/control"
	"trunkline/identity"
	"trunkline/ingest/feed"
)

// Control acts on agents and calls.
type Control interface {
	// Act does an action and returns its id once the platform has taken it. An administrator, supervisor
	// or agent may call it, with a token or an API key; an agent may not monitor calls. Returns
	// fault.KindInvalid for a wrong field, fault.KindNotFound for what the caller does not see,
	// fault.KindForbidden for what it may not act on, fault.KindConflict for what the state or the
	// platform does not allow, fault.KindUnprocessable without an extension to ring, fault.KindLimited
	// after too many actions, fault.KindRefused with the platform's words, and fault.KindUnavailable if
	// the platform, its node or the database does not answer.
	Act(ctx context.Context, r control.Request) (actionID string, err error)
	// Find returns the state of an action to the caller who asked for it, or to an administrator of its
	// account. Returns fault.KindNotFound for others and for an unknown action.
	Find(ctx context.Context, caller *identity.Principal, actionID string) (*control.Status, error)
}

// controlRoutes are for administrators, supervisors and agents, and API keys with the scope
// control.
type controlRoutes struct {
	control Control
	auth    auth
}

func (r controlRoutes) routes() []route {
	return []route{
		{method: http.MethodPost, path: "/api/v2/agents/:agent_id/actions",
			handle: authorized(r.auth.authenticateAccount, r.handleAgent), also: limitedRoles,
			scope: identity.ScopeControl},
		{method: http.MethodPost, path: "/api/v2/calls/:origination_call_id/actions",
			handle: authorized(r.auth.authenticateAccount, r.handleCall), also: limitedRoles,
			scope: identity.ScopeControl},
		{method: http.MethodGet, path: "/api/v2/actions/:action_id",
			handle: authorized(r.auth.authenticateAny, r.handleGet), also: limitedRoles, scope: identity.ScopeControl},
	}
}

func (r controlRoutes) handleAgent(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}
	return r.doAction(c, body, control.Request{
		Account: account, AgentID: c.Param("agent_id"), QueueID: body.String("queue_id", optional),
		Reason: body.String("reason", optional),
	})
}

func (r controlRoutes) handleCall(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}
	return r.doAction(c, body, control.Request{
		Account: account, CallID: c.Param("origination_call_id"), Destination: body.String("destination", optional),
	})
}

func (r controlRoutes) doAction(c echo.Context, body *jsonObject, request control.Request) error {
	request.Caller, request.Key = callerOf(c), c.Request().Header.Get("Idempotency-Key")
	request.Action = feed.Action(body.String("action", required))
	if err := body.Err(invalidBody); err != nil {
		return err
	}
	id, err := r.control.Act(c.Request().Context(), request)
	return respond(c, http.StatusAccepted, struct {
		ActionID string `json:"action_id"`
	}{id}, err)
}

func (r controlRoutes) handleGet(c echo.Context, caller *identity.Principal) error {
	status, err := r.control.Find(c.Request().Context(), caller, c.Param("action_id"))
	return respond(c, http.StatusOK, status, err)
}
