package api

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// Uploads and downloads of recordings have no total time limit. A deadline that each read
// or write extends ends those whose client stalls.

// deadline is a connection's read or write deadline. Errors of setting it are ignored,
// because reads and writes of such a connection fail, too.
type deadline struct {
	set          func(time.Time) error
	stallTimeout time.Duration
	until        time.Time // what was set last
}

func newReadDeadline(c echo.Context, stallTimeout time.Duration) *deadline {
	return &deadline{set: http.NewResponseController(c.Response().Writer).SetReadDeadline, stallTimeout: stallTimeout}
}

// extend ensures that the deadline is at least half of stallTimeout from now.
func (d *deadline) extend() {
	now := time.Now()
	if d.until.Sub(now) < d.stallTimeout/2 {
		d.until = now.Add(d.stallTimeout)
		_ = d.set(d.until)
	}
}

func (d *deadline) remove() {
	d.until = time.Time{}
	_ = d.set(d.until)
}

// uploadReader reads a request's body and moves its deadline.
type uploadReader struct {
	body     io.Reader
	deadline *deadline
}

func (u *uploadReader) Read(p []byte) (int, error) {
	u.deadline.extend()
	n, err := u.body.Read(p)
	if err != nil {
		u.deadline.remove() // the rest of the request does not depend on the client
	}
	return n, err
}
