package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
)

// CallListeners has AI providers listen to the calls that Trunkline connects.
type CallListeners interface {
	// StartListener has a provider listen to an account's call in progress on any node, with an entry of the audit log,
	// and returns the id of the session. Returns fault.KindNotFound for a call or a provider that the account
	// does not have, fault.KindInvalid for a provider of another mode, fault.KindConflict if the provider hears
	// the call already or the call is not connected, fault.KindLimited, fault.KindUnavailable and
	// fault.KindRefused for a provider that cannot be connected.
	StartListener(ctx context.Context, accountID, callID, providerID string) (sessionID string, err error)
}

// listenerRoutes have providers listen to calls in progress.
type listenerRoutes struct{ calls CallListeners }

func (r listenerRoutes) handleStart(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	provider := body.String("provider_id", required)
	if err := body.Err(invalidBody); err != nil {
		return err
	}

	id, err := r.calls.StartListener(c.Request().Context(), account.ID, c.Param("origination_call_id"), provider)
	return respond(c, http.StatusCreated, struct {
		SessionID string `json:"session_id"`
	}{id}, err)
}
