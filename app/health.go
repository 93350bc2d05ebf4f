package app

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	"trunkline/internal/kafka"
)

// health answers the probes. An unavailable backend does not make a node unready, because it
// affects all nodes and subscribers stay connected. An embedded broker that cannot write to its
// disk makes the node unready until a restart, because it affects this node only.
type health struct {
	started  atomic.Bool // the topics exist, consumers run
	draining atomic.Bool
	waiting  atomic.Pointer[string] // the backend that the start waits for; nil: none

	broker atomic.Pointer[kafka.Cluster] // nil until it is open

	parts []readyPart // complete before the listeners start
}

// readyPart is a part that accepts no requests until it is ready.
type readyPart struct {
	name  string
	ready func() bool
}

// addReadyPart makes readiness depend on a part. It is called only before the listeners start.
func (h *health) addReadyPart(name string, ready func() bool) {
	h.parts = append(h.parts, readyPart{name, ready})
}

func (h *health) setStarted()               { h.started.Store(true) }
func (h *health) setDraining()              { h.draining.Store(true) }
func (h *health) setWaiting(backend string) { h.waiting.Store(&backend) }

// unreadyReason returns the reason why the node should get no traffic, "" if it
// should get traffic.
func (h *health) unreadyReason() string {
	backend := h.waiting.Load()
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
	case backend == nil:
		return "starting"
	}

	return "waiting for " + *backend
}

func (h *health) handleLive(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }

func (h *health) handleReady(w http.ResponseWriter, _ *http.Request) {
	reason := h.unreadyReason()
	if reason != "" {
		http.Error(w, reason, http.StatusServiceUnavailable)
		return
	}
	_, _ = fmt.Fprintln(w, h.readyText())
}

// readyText returns the body of a ready node's answer. It names missing topics, which do not make a node
// unready because they affect all nodes.
func (h *health) readyText() string {
	broker := h.broker.Load()
	if broker == nil || len(broker.MissingTopics()) == 0 {
		return "ok"
	}
	return "ok, but Kafka does not have " + strings.Join(broker.MissingTopics(), ", ") + ": see the log"
}
