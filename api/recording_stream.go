package api

import (
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// Uploads and downloads of recordings have no total limit. A deadline that moves with
// each read or write ends those whose client stalls.

// deadline is a connection's read or write deadline. Errors of setting it are
// ignored: such a connection fails on its own.
type deadline struct {
	set          func(time.Time) error
	stallTimeout time.Duration
	until        time.Time
}

func newReadDeadline(c echo.Context, stallTimeout time.Duration) *deadline {
	return &deadline{set: http.NewResponseController(c.Response().Writer).SetReadDeadline, stallTimeout: stallTimeout}
}

// extend sets the deadline to at least half of stall from now.
func (d *deadline) extend() {
	if now := time.Now(); d.until.Sub(now) < d.stallTimeout/2 {
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
		u.deadline.remove() // the remaining work does not depend on the client
	}
	return n, err
}

// audioWriter receives what http.ServeContent writes. It withholds error responses,
// whose body finish replaces.
type audioWriter struct {
	http.ResponseWriter
	control     *http.ResponseController
	deadline    *deadline
	errorStatus int // status
}

func newAudioWriter(c echo.Context, stallTimeout time.Duration) *audioWriter {
	control := http.NewResponseController(c.Response().Writer)
	_ = control.SetReadDeadline(time.Time{}) // the server's deadline for the request would end a long response
	return &audioWriter{c.Response(), control, &deadline{set: control.SetWriteDeadline, stallTimeout: stallTimeout}, 0}
}

func (p *audioWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		p.errorStatus = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *audioWriter) Write(b []byte) (int, error) {
	if p.errorStatus != 0 {
		return len(b), nil
	}
	p.deadline.extend()
	return p.ResponseWriter.Write(b)
}

// finish flushes the response, removes the deadline for the next one of the
// connection, and returns a withheld error response as a fault.
func (p *audioWriter) finish() error {
	switch p.errorStatus {
	case 0:
		p.deadline.extend()
		_ = p.control.Flush() // the client may have left
		p.deadline.remove()
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		return p.withNoStore(fault.New(fault.KindRange, "The range is outside of the recording"))
	case http.StatusPreconditionFailed:
		return p.withNoStore(fault.New(fault.KindPrecondition, "The recording has changed"))
	default:
		return p.withNoStore(fault.Internal(nil, "The recording could not be read"))
	}
}

// withNoStore sets a header that http.ServeContent removes from error responses.
func (p *audioWriter) withNoStore(f *fault.Error) error {
	p.Header().Set("Cache-Control", "no-store")
	return f
}
