package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// bodyReader reads the body of a request into memory that it takes from a budget as the
// bytes arrive: a client that only announces a large body holds nothing.
type bodyReader struct {
	c      echo.Context
	source io.Reader // the request's body
	lease  *bodyLease
	budget *bodyBudget // whose limits apply, and which the bytes are taken from
	holder string      // in budget
	body   []byte      // what was read so far
}

// newBodyReader returns a reader with the limits of the request's caller.
func newBodyReader(c echo.Context) *bodyReader {
	lease, _ := c.Get(contextBody).(*bodyLease)
	r := &bodyReader{c: c, lease: lease}
	r.budget, r.holder = lease.budgetOf(c, callerOf(c))
	// Past this limit net/http closes the connection instead of reading the rest.
	// The limit is that of callers, also for a stranger: read may go on after raiseLimits.
	r.source = http.MaxBytesReader(c.Response().Writer, c.Request().Body, lease.callers.limits.bytes)
	return r
}

// raiseLimits lets read continue with the limits of authenticated callers.
func (r *bodyReader) raiseLimits() {
	r.budget, r.holder = r.lease.budgetOf(r.c, callerOf(r.c))
	r.budget = r.lease.callers // also for a token of the provider, which is no caller
}

func (r *bodyReader) tooLarge() error {
	limit := fmt.Sprintf("%d KiB", r.budget.limits.bytes>>10)
	if r.budget.limits.bytes == 1<<20 {
		limit = "1 MiB"
	}
	return fault.New(fault.KindTooLarge, "The body is over %s", limit)
}

// read reads the body to its end. Returns fault.KindTooLarge if it is over the limit;
// after raiseLimits it may be called again.
func (r *bodyReader) read() error {
	limit := int(r.budget.limits.bytes)
	if r.c.Request().ContentLength > int64(limit) {
		return r.tooLarge()
	}

	for {
		// One byte more than is allowed shows that the body is too large.
		if err := r.grow(limit + 1); err != nil {
			return err
		}

		n, err := r.source.Read(r.body[len(r.body):cap(r.body)])
		r.body = r.body[:len(r.body)+n]

		var tooLong *http.MaxBytesError
		switch {
		case len(r.body) > limit || errors.As(err, &tooLong):
			return r.tooLarge()
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return &fault.Error{Kind: fault.KindInvalid, Message: "The body is truncated", Cause: err}
		}
	}
}

// grow makes room for at least one more byte if the body has fewer than most bytes.
func (r *bodyReader) grow(most int) error {
	if len(r.body) < cap(r.body) || len(r.body) >= most {
		return nil
	}

	size := min(max(firstReadBytes, 2*cap(r.body)), most)
	if err := r.lease.take(r.budget, r.holder, int64(size-cap(r.body))); err != nil {
		return err
	}

	grown := make([]byte, len(r.body), size)
	copy(grown, r.body)
	r.body = grown

	return nil
}

// parse parses what read has read, and takes the memory of its values from the budget.
func (r *bodyReader) parse() (*jsonObject, error) {
	o, values, err := parse(r.body, r.budget.limits)
	if err != nil {
		return nil, err
	}
	return o, r.lease.take(r.budget, r.holder, int64(values)*valueBytes)
}
