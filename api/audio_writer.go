package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"trunkline/internal/fault"
)

// audioWriter is the ResponseWriter for http.ServeContent. It discards error responses of
// http.ServeContent; finish returns an error in their place.
type audioWriter struct {
	http.ResponseWriter
	control     *http.ResponseController
	deadline    *deadline
	errorStatus int // status of a discarded error response, else 0
}

func newAudioWriter(c echo.Context, stallTimeout time.Duration) *audioWriter {
	control := http.NewResponseController(c.Response().Writer)
	_ = control.SetReadDeadline(time.Time{}) // the server's deadline for the request would end a long response
	return &audioWriter{c.Response(), control, &deadline{set: control.SetWriteDeadline, stallTimeout: stallTimeout}, 0}
}

func (w *audioWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.errorStatus = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *audioWriter) Write(b []byte) (int, error) {
	if w.errorStatus != 0 {
		return len(b), nil
	}
	w.deadline.extend()
	return w.ResponseWriter.Write(b)
}

// finish flushes the response and removes the deadline, which would apply to the next
// response of the connection. It returns a discarded error response as a fault.
func (w *audioWriter) finish() error {
	switch w.errorStatus {
	case 0:
		w.deadline.extend()
		_ = w.control.Flush() // the client may have left
		w.deadline.remove()
		return nil
	case http.StatusRequestedRangeNotSatisfiable:
		return w.withNoStore(fault.New(fault.KindRange, "The range is outside of the recording"))
	case http.StatusPreconditionFailed:
		return w.withNoStore(fault.New(fault.KindPrecondition, "The recording has changed"))
	default:
		return w.withNoStore(fault.Internal(nil, "The recording could not be read"))
	}
}

// withNoStore restores the header Cache-Control, which http.ServeContent removes from error
// responses, and returns f.
func (w *audioWriter) withNoStore(f *fault.Error) error {
	w.Header().Set("Cache-Control", "no-store")
	return f
}
