package api

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// A recording takes as long as it takes, up or down. What ends it is a client
// that stops: while it moves, its deadline moves ahead of it.

// deadline is a connection's, for reading or for writing. A connection that
// takes none fails by itself.
type deadline struct {
	set   func(time.Time) error
	stall time.Duration
	until time.Time
}

func readDeadline(c echo.Context, stall time.Duration) *deadline {
	return &deadline{set: http.NewResponseController(c.Response().Writer).SetReadDeadline, stall: stall}
}

// move gives the client at least half of stall from now.
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

// upload is a request's body on its way to a room.
type upload struct {
	body     io.Reader
	deadline *deadline
}

func (u *upload) Read(p []byte) (int, error) {
	u.deadline.move()
	n, err := u.body.Read(p)
	if err != nil {
		u.deadline.lift() // what comes now takes our time, not the client's
	}
	return n, err
}

// player is where http.ServeContent writes. It keeps back what has no body of
// ours, for end to answer.
type player struct {
	http.ResponseWriter
	control  *http.ResponseController
	deadline *deadline
	refused  int // status
}

func newPlayer(c echo.Context, stall time.Duration) *player {
	control := http.NewResponseController(c.Response().Writer)
	_ = control.SetReadDeadline(time.Time{}) // the server's, of the whole request, would end a long answer
	return &player{c.Response(), control, &deadline{set: control.SetWriteDeadline, stall: stall}, 0}
}

func (p *player) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		p.refused = status
		return
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *player) Write(b []byte) (int, error) {
	if p.refused != 0 {
		return len(b), nil
	}
	p.deadline.move()
	return p.ResponseWriter.Write(b)
}

// end sends what is still buffered, so that the connection's next answer has no
// deadline of this one, and turns what was kept back into a fault.
func (p *player) end() error {
	switch p.refused {
	case 0:
		p.deadline.move()
		_ = p.control.Flush() // who does not read any more is told nothing
		p.deadline.lift()
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		return p.refuse(fault.New(fault.KindRange, "The range lies outside of the recording"))
	case http.StatusPreconditionFailed:
		return p.refuse(fault.New(fault.KindPrecondition, "The recording is another one"))
	default:
		return p.refuse(fault.Internal(nil, "The recording could not be read"))
	}
}

// refuse sets again what http.ServeContent takes out of a refusal.
func (p *player) refuse(f *fault.Error) error {
	p.Header().Set("Cache-Control", "no-store")
	return f
}

// headKey marks a request that came as HEAD.
type headKey struct{}

// asGet makes a HEAD request a GET, for the router.
func asGet(r *http.Request) *http.Request {
	get := r.WithContext(context.WithValue(r.Context(), headKey{}, true))
	get.Method = http.MethodGet
	return get
}

// asSent is the request with the method it came with, for who need not read
// what nobody gets.
func asSent(r *http.Request) *http.Request {
	if r.Context().Value(headKey{}) == nil {
		return r
	}
	head := *r
	head.Method = http.MethodHead
	return &head
}
