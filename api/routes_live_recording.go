package api

import (
	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/recording"
)

// liveRecordingRoutes control the recording of calls in progress.
type liveRecordingRoutes struct{ calls *recording.Recorder }

func (r liveRecordingRoutes) handleControl(c echo.Context, account identity.Account) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	action := body.String("action", required)
	if err := body.Err(invalidBody); err != nil {
		return err
	}

	return noContent(c, r.calls.Control(c.Request().Context(), recording.Control{
		AccountID: account.ID, CallID: c.Param("origination_call_id"), Action: action,
	}))
}
