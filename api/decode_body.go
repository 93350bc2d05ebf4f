package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
	"trunkline/internal/jsonscan"
)

const maxNestingDepth = 100 // of nested arrays and objects

const invalidBody = "Invalid request body"

// decode reads and parses the request's body, which must be one JSON object within the
// limits of the request's caller, without repeated names.
func decode(c echo.Context) (*jsonObject, error) {
	if err := checkContentType(c.Request().Header); err != nil {
		return nil, err
	}
	r := newBodyReader(c)
	if err := r.read(); err != nil {
		return nil, err
	}
	return r.parse()
}

// decodeRaw is decode for a handler that passes the members to another package's parser.
func decodeRaw(c echo.Context) (map[string]json.RawMessage, error) {
	body, err := decode(c)
	if err != nil {
		return nil, err
	}
	return body.RawMembers(), nil
}

// checkContentType returns fault.KindUnsupported for a Content-Type other than JSON in
// UTF-8. The header may be absent.
func checkContentType(header http.Header) error {
	if err := checkEncoding(header); err != nil {
		return err
	}

	contentType := header.Get("Content-Type")
	if contentType == "" {
		return nil
	}

	media, params, err := mime.ParseMediaType(contentType)
	charset, hasCharset := params["charset"]
	if err != nil || media != "application/json" || hasCharset && !strings.EqualFold(charset, "utf-8") {
		return fault.New(fault.KindUnsupported, "The Content-Type must be application/json")
	}

	return nil
}

// checkEncoding returns fault.KindUnsupported for a Content-Encoding other than identity.
func checkEncoding(header http.Header) error {
	encoding := header.Get("Content-Encoding")
	if encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fault.New(fault.KindUnsupported, "The Content-Encoding must be absent")
	}
	return nil
}

// parse parses a body within limits, and returns the number of its values.
func parse(body []byte, limits bodyLimits) (o *jsonObject, values int, err error) {
	v, values, err := jsonscan.Strict{MaxDepth: limits.depth, MaxValues: limits.values}.Parse(body)
	if err != nil {
		return nil, 0, bodyError(err, limits)
	}
	if v.Kind() != jsonscan.Object {
		return nil, 0, fault.Invalid("The body must be a JSON object")
	}
	return newObject(v), values, nil
}

// bodyError returns the fault for an error of jsonscan.
func bodyError(err error, limits bodyLimits) error {
	var repeated *jsonscan.RepeatedError
	switch {
	case errors.As(err, &repeated):
		return fault.InvalidField(repeated.Name, "repeated", invalidBody)
	case errors.Is(err, jsonscan.ErrUTF8):
		return fault.Invalid("The body is not valid UTF-8")
	case errors.Is(err, jsonscan.ErrTrailing):
		return fault.Invalid("The body has data after the JSON value")
	case errors.Is(err, jsonscan.ErrDepth):
		return fault.Invalid(fmt.Sprintf("The body is nested more than %d deep", limits.depth))
	case errors.Is(err, jsonscan.ErrTooMany):
		return fault.Invalid(fmt.Sprintf("The body has more than %d values", limits.values))
	}

	return &fault.Error{Kind: fault.KindInvalid, Message: "The body is not JSON", Cause: err}
}
