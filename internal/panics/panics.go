// Package panics prevents a fault in one call, session or message from ending the
// process: it recovers panics at calls of third-party code (SIP, SDP and audio
// libraries) and in goroutines that handle one such unit. It counts them by place, and
// logs them with their stack: the first twenty, then one every ten seconds.
//
// Code that shares state with other units does not recover: after a panic that state
// may be inconsistent, and a restart is safer.
package panics

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// Recoverer recovers panics. A nil Recoverer does not recover them.
type Recoverer struct {
	total    *prometheus.CounterVec
	log      *slog.Logger
	logLimit rate.Sometimes // a packet that causes a panic may arrive fifty times a second
}

// New returns a Recoverer. All Recoverers of one registry share the metric.
func New(reg prometheus.Registerer, log *slog.Logger) *Recoverer {
	return &Recoverer{total: newTotal(reg), log: log, logLimit: rate.Sometimes{First: 20, Interval: 10 * time.Second}}
}

// InitMetrics creates the metric's series for the places, so that the first panic in
// each is visible as an increase.
func (r *Recoverer) InitMetrics(places ...string) {
	if r == nil {
		return
	}
	for _, where := range places {
		r.total.WithLabelValues(where)
	}
}

// Recover recovers a panic of the function that defers it. It must be deferred
// directly.
func (r *Recoverer) Recover(where string) {
	if r == nil {
		return
	}
	value := recover()
	if value != nil {
		r.Report(where, value)
	}
}

// Do runs f and reports whether it panicked.
func (r *Recoverer) Do(where string, f func()) (panicked bool) {
	// Set first: after a panic that was recovered, the function returns the named result as it is.
	panicked = true
	defer r.Recover(where)
	f()
	return false
}

// Report counts and logs a panic that its caller has recovered, with further
// attributes. The function that recovered must call it, so that the stack is that of
// the panic.
func (r *Recoverer) Report(where string, value any, attrs ...any) {
	r.total.WithLabelValues(where).Inc()
	r.logLimit.Do(func() {
		attrs = append([]any{"where", where, "panic", fmt.Sprint(value)}, attrs...)
		r.log.Error("panic recovered", append(attrs, "stack", string(debug.Stack()))...)
	})
}
