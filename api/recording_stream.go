package api

import (
	"context"
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
	set   func(time.Time) error
	stall time.Duration
	until time.Time
}

func readDeadline(c echo.Context, stall time.Duration) *deadline {
	return &deadline{set: http.NewResponseController(c.Response().Writer).SetReadDeadline, stall: stall}
}

// move sets the deadline to at least half of stall from now.
func (d *deadline) move() {
	if now := time.Now(); d.until.Sub(now) < d.stall/2 {
		d.until = now.Add(d.stall)
		_ = d.set(d.until)
	}
}

func (d *deadline) lift() {
	d.until = time.Time{}
	_ = d.set(d.until)
}

// uploadReader reads a request's body and moves its deadline.
type uploadReader struct {
	body     io.Reader
	deadline *deadline
}

func (u *uploadReader) Read(p []byte) (int, error) {
	u.deadline.move()
	n, err := u.body.Read(p)
	if err != nil {
		u.deadline.lift() // the remaining work does not depend on the client
	}
	return n, err
}

// audioWriter receives what http.ServeContent writes. It withholds error responses,
// whose body finish replaces.
type audioWriter struct {
	http.ResponseWriter
	control  *http.ResponseController
	deadline *deadline
	refused  int // status
}

func newAudioWriter(c echo.Context, stall time.Duration) *audioWriter {
	control := http.NewResponseController(c.Response().Writer)
	_ = control.SetReadDeadline(time.Time{}) // the server's deadline for the request would end a long response
	return &audioWriter{c.Response(), control, &deadline{set: control.SetWriteDeadline, stall: stall}, 0}
}

func (p *audioWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		p.refused = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *audioWriter) Write(b []byte) (int, error) {
	if p.refused != 0 {
		return len(b), nil
	}
	p.deadline.move()
	return p.ResponseWriter.Write(b)
}

// finish flushes the response, removes the deadline for the next one of the
// connection, and returns a withheld error response as a fault.
func (p *audioWriter) finish() error {
	switch p.refused {
	case 0:
		p.deadline.move()
		_ = p.control.Flush() // the client may have left
		p.deadline.lift()
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		return p.refuse(fault.New(fault.KindRange, "The range is outside of the recording"))
	case http.StatusPreconditionFailed:
		return p.refuse(fault.New(fault.KindPrecondition, "The recording has changed"))
	default:
		return p.refuse(fault.Internal(nil, "The recording could not be read"))
	}
}

// refuse sets a header that http.ServeContent removes from error responses.
func (p *audioWriter) refuse(f *fault.Error) error {
	p.Header().Set("Cache-Control", "no-store")
	return f
}

// headKey marks a request that arrived as HEAD.
type headKey struct{}

// asGet turns a HEAD request into a GET for the router.
func asGet(r *http.Request) *http.Request {
	get := r.WithContext(context.WithValue(r.Context(), headKey{}, true))
	get.Method = http.MethodGet
	return get
}

// asSent returns the request with its original method, so that a handler can skip
// a body that is not sent.
func asSent(r *http.Request) *http.Request {
	if r.Context().Value(headKey{}) == nil {
		return r
	}
	head := *r
	head.Method = http.MethodHead
	return &head
}
