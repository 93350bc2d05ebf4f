package kazoo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"trunkline/internal/fault"
	"trunkline/telephony/crossbar"
)

const retryAfter = 2 * time.Second

// Errors that the driver handles.
var (
	errNotFound = fault.New(fault.KindRefused, "The platform does not have this")
	errNotJSON  = fault.New(fault.KindRefused, "The platform's answer is not readable")
)

// request sends data to Crossbar, if it is not nil, and decodes the response's data into into, if that is
// not nil. It returns errors with a fault kind.
func (d *Driver) request(ctx context.Context, method, path string, data, into any) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()

	err := d.crossbar.Do(ctx, method, path, data, into)
	var status crossbar.StatusError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, crossbar.ErrKeyRefused), errors.Is(err, crossbar.Unauthorized):
		return fault.New(fault.KindRefused, "The platform rejects our credentials")
	case errors.Is(err, crossbar.NotFound):
		return errNotFound
	case errors.Is(err, crossbar.ErrUnreadable): // the platform has carried out the request
		return fmt.Errorf("reading the platform's answer: %w", errNotJSON)
	case errors.As(err, &status) && status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
		return fault.New(fault.KindRefused, "The platform refused the call with %d", int(status))
	}

	return fault.Unavailable(err, retryAfter, "The platform cannot be reached")
}

// jsonText is a JSON string; other values decode as "".
type jsonText string

// UnmarshalJSON implements json.Unmarshaler.
func (t *jsonText) UnmarshalJSON(value []byte) error {
	var s string
	if json.Unmarshal(value, &s) == nil {
		*t = jsonText(s)
	}
	return nil
}
