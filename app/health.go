package app

import (
	"fmt"
	"net/http"
	"sync/atomic"
)

// health answers the probes. A backend that is away does not make a node
// unready: taking all nodes out would help nobody, and subscribers stay.
type health struct {
	started  atomic.Bool // the topics exist, consumers run
	draining atomic.Bool
}

func (h *health) start() { h.started.Store(true) }
func (h *health) drain() { h.draining.Store(true) }

func (h *health) live(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }

func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	switch {
	case h.draining.Load():
		http.Error(w, "draining", http.StatusServiceUnavailable)
	case !h.started.Load():
		http.Error(w, "waiting for kafka", http.StatusServiceUnavailable)
	default:
		_, _ = fmt.Fprintln(w, "ok")
	}
}
