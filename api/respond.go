package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/internal/entitytag"
	"trunkline/internal/report"
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

// allowCaching lets clients cache the response, which must be the same for all callers. The
// default is no-store.
func allowCaching(c echo.Context) {
	c.Response().Header().Set("Cache-Control", "public, max-age=300")
}

// respond sends body as JSON if err is nil, and returns err otherwise.
func respond(c echo.Context, status int, body any, err error) error {
	if err != nil {
		return err
	}
	return writeJSON(c, status, body)
}

// noContent sends a response without a body if err is nil, and returns err otherwise.
func noContent(c echo.Context, err error) error {
	if err == nil {
		c.Response().WriteHeader(http.StatusNoContent)
	}
	return err
}

// maxSearchLength bounds the text of a search, in bytes.
const maxSearchLength = 256

// writePage sends the page of a list that the query selects with page_size and start_key.
// The order is that of the keys, which must be unique. view returns an item's JSON. texts returns
// what search is looked for in; nil: the list has no search.
func writePage[T, U any](c echo.Context, list []T, key func(T) string, texts func(T) []string, view func(T) U) error {
	page, err := pageOf(c, list, key, texts, view)
	return respond(c, http.StatusOK, page, err)
}

// pageOf returns the page of writePage.
func pageOf[T, U any](c echo.Context, list []T, key func(T) string, texts func(T) []string,
	view func(T) U) (*report.Page[U], error) {
	q := report.NewQuery(c.QueryParams())
	page := &report.Page[U]{Data: []U{}, PageSize: q.PageSize()}
	start, err := base64.RawURLEncoding.DecodeString(q.Get("start_key"))
	if err != nil {
		q.AddFault("start_key", "invalid", "must be a page's next_start_key")
	}

	search := strings.ToLower(q.Text("search", maxSearchLength))
	if err := q.Err(); err != nil {
		return nil, err
	}

	if search != "" {
		list = slices.DeleteFunc(slices.Clone(list), func(item T) bool {
			return !slices.ContainsFunc(texts(item),
				func(text string) bool { return strings.Contains(strings.ToLower(text), search) })
		})
	}

	slices.SortFunc(list, func(a, b T) int { return strings.Compare(key(a), key(b)) })
	for _, item := range list {
		switch itemKey := key(item); {
		case itemKey < string(start):
			continue
		case len(page.Data) == page.PageSize:
			page.NextStartKey = base64.RawURLEncoding.EncodeToString([]byte(itemKey))
			return page, nil
		}

		page.Data = append(page.Data, view(item))
	}

	return page, nil
}

// respondTagged is respond with the body's entity tag. The response to a GET is 304 if its
// If-None-Match has the tag.
func respondTagged(c echo.Context, status int, tag string, body any, err error) error {
	if err != nil {
		return err
	}

	c.Response().Header().Set("ETag", tag)
	r := c.Request()
	if r.Method == http.MethodGet && entitytag.NotModified(r.Header.Get("If-None-Match"), tag) {
		c.Response().WriteHeader(http.StatusNotModified)
		return nil
	}

	return writeJSON(c, status, body)
}

// respondCreated is respondTagged with the location of the new object.
func respondCreated(c echo.Context, location, tag string, body any, err error) error {
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", location)
	return respondTagged(c, http.StatusCreated, tag, body, nil)
}
