package app

import (
	"fmt"
	"net/http"
	"sync/atomic"

	"trunkline/internal/kafka"
)

// health answers the probes. An unavailable backend does not make a node unready:
// removing all nodes from the balancer would not help, and subscribers stay connected.
// An embedded broker that cannot write to its disk does: only this node is affected,
// until a restart.
type health struct {
	started  atomic.Bool // the topics exist, consumers run
	draining atomic.Bool
	waiting  atomic.Pointer[string] // the backend that the start waits for; nil: none

	broker atomic.Pointer[kafka.Cluster] // nil until it is open

	parts []readyPart // complete before the listeners start
}

// readyPart is a part that takes no requests until it is ready.
type readyPart struct {
	name  string
	ready func() bool
}

// awaits makes readiness depend on a part. It is called while the process is built.
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
