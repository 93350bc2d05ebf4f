package api

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/identity"
	"trunkline/internal/fault"
)

// deviceView is the JSON of a device in responses. Only the response to its creation has
// the password.
type deviceView struct {
	ID        string `json:"id"`
	UserID    string `json:"user_id"`
	Name      string `json:"name"`
	CreatedAt int64  `json:"created_at"` // Unix seconds
	Password  string `json:"password,omitempty"`
}

func viewDevice(d identity.Device) deviceView {
	return deviceView{ID: d.ID, UserID: d.UserID, Name: d.Name, CreatedAt: d.CreatedAt.Unix()}
}

func (r directoryRoutes) handleListDevices(c echo.Context, found identity.User) error {
	devices, err := r.directory.ListDevices(c.Request().Context(), found.AccountID, found.Username)
	if err != nil {
		return err
	}
	return writePage(c, devices,
		func(d identity.Device) string { return fmt.Sprintf("%020d.%s", d.CreatedAt.UnixMilli(), d.ID) }, nil,
		viewDevice)
}

func (r directoryRoutes) handleCreateDevice(c echo.Context, found identity.User) error {
	body, err := decode(c)
	if err != nil {
		return err
	}

	name := body.String("name", optional)
	if err := body.Err("Invalid device"); err != nil {
		return err
	}

	if err := r.directory.CheckCredentialGrant(callerOf(c), identity.RoleUser); err != nil {
		return err // a phone does not do more than a user
	}

	password, created, err := r.directory.CreateDevice(c.Request().Context(), found.AccountID, found.Username, name)
	if err != nil {
		return err
	}

	view := viewDevice(created)
	view.Password = password
	c.Response().Header().Set("Location", userPath(found)+"/devices/"+created.ID)

	return writeJSON(c, http.StatusCreated, view)
}

func (r directoryRoutes) handleDeleteDevice(c echo.Context, found identity.User) error {
	// DeleteDevice takes the id of any user's device: only one of this user's may be named.
	devices, err := r.directory.ListDevices(c.Request().Context(), found.AccountID, found.Username)
	if err != nil {
		return err
	}

	for _, d := range devices {
		if d.ID != c.Param("device") {
			continue
		}
		return noContent(c, r.directory.DeleteDevice(c.Request().Context(), d.ID))
	}

	return fault.NotFound("Device not found")
}
