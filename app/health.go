package app

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"trunkline/internal/kafka"
)

// health answers the probes. A backend that is away does not make a node
// unready: removing all nodes would not help, and subscribers stay connected.
// An embedded broker that cannot write to its disk does: it is this node's
// fault and lasts until a restart.
type health struct {
	started  atomic.Bool // the topics exist, consumers run
	draining atomic.Bool
	waiting  atomic.Pointer[string] // what a start waits for; nil: nothing

	broker atomic.Pointer[kafka.Cluster] // nil until it is open

	parts []readyPart // complete before the listeners start
}

// readyPart is a part that takes no requests before it is ready.
type readyPart struct {
	name  string
	ready func() bool
}

// awaits makes readiness wait for a part. It is called while the process is
// built.
func (h *health) awaits(name string, ready func() bool) {
	h.parts = append(h.parts, readyPart{name, ready})
}

func (h *health) start()           { h.started.Store(true) }
func (h *health) drain()           { h.draining.Store(true) }
func (h *health) wait(what string) { h.waiting.Store(&what) }

// unready returns the reason why the node should get no traffic, "" if it
// should get traffic.
func (h *health) unready() string {
	what := h.waiting.Load()
	switch {
	case h.draining.Load():
		return "draining"
	case h.broker.Load() != nil && h.broker.Load().WriteFault() != nil:
		return "the embedded broker takes no writes: see the log, check the disk of data_dir, restart"
	case h.started.Load():
		for _, p := range h.parts {
			if !p.ready() {
				return "starting: " + p.name
			}
		}
		return ""
	case what == nil:
		return "starting"
	}
	return "waiting for " + *what
}

func (h *health) live(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }

func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	if why := h.unready(); why != "" {
		http.Error(w, why, http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}
