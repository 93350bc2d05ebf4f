package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

const (
	maxBodyBytes = 1 << 20 // of JSON
	maxDepth     = 100     // of nested arrays and objects
)

const invalidBody = "Invalid request body"

// decode reads and parses the request's body, which must be one JSON object of at most
// maxBodyBytes without repeated names.
func decode(c echo.Context) (*jsonObject, error) {
	r := c.Request()
	if err := checkContentType(r.Header); err != nil {
		return nil, err
	}
	tooLarge := fault.New(fault.KindTooLarge, "The body is over 1 MiB")
	if r.ContentLength > maxBodyBytes {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, r.Body, maxBodyBytes))
	var tooLong *http.MaxBytesError
	if errors.As(err, &tooLong) {
		return nil, tooLarge
	}
	if err != nil {
		return nil, &fault.Error{Kind: fault.KindInvalid, Message: "The body is truncated", Cause: err}
	}
	if !utf8.Valid(body) {
		return nil, fault.Invalid("The body is not valid UTF-8")
	}
	return parse(body)
}

// decodeRaw is decode for a handler that passes the members to another package's parser.
func decodeRaw(c echo.Context) (map[string]json.RawMessage, error) {
	body, err := decode(c)
	if err != nil {
		return nil, err
	}
	return body.Raw()
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
	if encoding := header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return fault.New(fault.KindUnsupported, "The Content-Encoding must be absent")
	}
	return nil
}

func parse(body []byte) (*jsonObject, error) {
	p := parser{json.NewDecoder(bytes.NewReader(body))}
	p.UseNumber()
	value, err := p.value(maxDepth)
	if err != nil {
		return nil, syntaxError(err)
	}
	if _, err := p.Token(); !errors.Is(err, io.EOF) {
		return nil, fault.Invalid("The body has data after the JSON value")
	}
	members, ok := value.(map[string]any)
	if !ok {
		return nil, fault.Invalid("The body must be a JSON object")
	}
	return newObject(members), nil
}

// syntaxError returns a fault of the parser unchanged, and fault.KindInvalid for an error of
// the JSON decoder.
func syntaxError(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return &fault.Error{Kind: fault.KindInvalid, Message: "The body is not JSON", Cause: err}
}

// parser builds a value from JSON tokens. Unlike json.Unmarshal it refuses repeated names
// and more than maxDepth levels.
type parser struct{ *json.Decoder }

func (p parser) value(depth int) (any, error) {
	token, err := p.Token()
	if err != nil {
		return nil, err
	}
	opening, ok := token.(json.Delim)
	if !ok {
		return token, nil
	}
	if depth == 0 {
		return nil, fault.Invalid(fmt.Sprintf("The body is nested more than %d deep", maxDepth))
	}
	if opening == '[' {
		return p.array(depth - 1)
	}
	return p.parseMembers(depth - 1)
}

func (p parser) array(depth int) (any, error) {
	elements := []any{}
	for p.More() {
		element, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	_, err := p.Token() // ]
	return elements, err
}

func (p parser) parseMembers(depth int) (any, error) {
	members := make(map[string]any)
	for p.More() {
		token, err := p.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder returns only strings here
		if _, repeated := members[name]; repeated {
			return nil, fault.InvalidField(name, "repeated", invalidBody)
		}
		if members[name], err = p.value(depth); err != nil {
			return nil, err
		}
	}
	_, err := p.Token() // }
	return members, err
}
