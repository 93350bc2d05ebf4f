package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"
)

// writeJSON sends body as JSON.
func writeJSON(c echo.Context, status int, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encoding the response: %w", err)
	}
	return writeBytes(c, status, "application/json", data)
}

func writeBytes(c echo.Context, status int, contentType string, data []byte) error {
	header := c.Response().Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Length", strconv.Itoa(len(data)))
	c.Response().WriteHeader(status)
	_, err := c.Response().Write(data)
	return err
}

// cacheable lets clients cache a response that is the same for all callers; the default
// is no-store.
func cacheable(c echo.Context) {
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
}

// respond sends body as JSON, unless there is an error.
func respond(c echo.Context, status int, body any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(c, status, body)
}

// noContent sends a response without a body, unless there is an error.
func noContent(c echo.Context, err error) error {
	if err == nil {
		c.Response().WriteHeader(http.StatusNoContent)
	}
	return err
}
