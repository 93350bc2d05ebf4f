package api

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// descriptions has the descriptions of the API as files.
//
//go:embed openapi.yaml asyncapi.yaml schemas/*.json
var descriptions embed.FS

func serveFile(name string) echo.HandlerFunc {
	return func(c echo.Context) error { return serveDescription(c, name, "application/yaml") }
}

// serveSchema serves the JSON Schemas that asyncapi.yaml refers to.
func serveSchema(c echo.Context) error {
	return serveDescription(c, "schemas/"+c.Param("name"), "application/schema+json")
}

func serveDescription(c echo.Context, name, contentType string) error {
	data, err := descriptions.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrInvalid) {
		return fault.NotFound("No such description")
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	allowCaching(c)
	return writeBytes(c, http.StatusOK, contentType, data)
}
