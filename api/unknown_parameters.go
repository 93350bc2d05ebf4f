package api

import (
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// Names of parameters that several routes have.
var (
	pageParams   = []string{"page_size", "start_key"}
	searchParams = []string{"page_size", "start_key", "search"}
	figureParams = []string{"startDate", "endDate", "interval", "by", "page_size", "start_key", "format"}
)

// withKnownQuery refuses a request with a parameter in its query that the route does not
// have: a misspelt filter would select everything. The error names each of them.
func withKnownQuery(known []string, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		raw := c.Request().URL.RawQuery
		if raw == "" {
			return next(c)
		}

		query, err := url.ParseQuery(raw)
		if err != nil {
			return fault.InvalidField("query", "malformed", "the query of the URL is not encoded as one")
		}

		var unknown []fault.Field
		for name := range query {
			if !slices.Contains(known, name) {
				unknown = append(unknown,
					fault.Field{Field: name, Code: "unknown", Message: "there is no such parameter here"})
			}
		}

		if len(unknown) == 0 {
			return next(c)
		}

		slices.SortFunc(unknown, func(a, b fault.Field) int { return strings.Compare(a.Field, b.Field) })
		return fault.Invalid("Unknown query parameter "+unknown[0].Field, unknown...)
	}
}
