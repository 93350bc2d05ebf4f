package origination

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
)

type metrics struct {
	placed  prometheus.Counter
	refused *prometheus.CounterVec
	states  *prometheus.CounterVec
	causes  *prometheus.CounterVec
	bridged prometheus.Histogram
	cancels *prometheus.CounterVec
}

// What became of a request to cancel.
const (
	cancelHere      = "here"
	cancelElsewhere = "elsewhere" // another node has the call
	cancelRefused   = "refused"
	cancelFailed    = "failed"
)

// refusals are the kinds of error that an origination ends with.
var refusals = [...]fault.Kind{
	fault.KindInvalid, fault.KindForbidden, fault.KindConflict, fault.KindUnprocessable,
	fault.KindLimited, fault.KindInternal, fault.KindRefused, fault.KindUnavailable,
}

// causes are those that have a label of their own; the rest are "other".
var causes = map[string]bool{
	"NORMAL_CLEARING": true, "USER_BUSY": true, "NO_ANSWER": true, "NO_USER_RESPONSE": true, "CALL_REJECTED": true,
	CauseAbsent: true, "UNALLOCATED_NUMBER": true, CauseCancelled: true, CauseLost: true, CauseUnknown: true,
}

const other = "other"

func newMetrics(reg prometheus.Registerer, active func() int) *metrics {
	m := &metrics{
		placed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_accepted_total", Help: "Calls that the platform accepted."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_refused_total", Help: "Calls that were not placed, by the kind of error."}, []string{"kind"}),
		states: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_states_total", Help: "Steps that calls have made, by the state they came to."}, []string{"state"}),
		causes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_ended_total", Help: "Calls that have ended, by cause."}, []string{"cause"}),
		bridged: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_origination_bridged_seconds", Help: "Time from a call's being accepted to its being bridged.",
			Buckets: []float64{.5, 1, 2, 5, 10, 20, 30, 60, 120}}),
		cancels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_cancels_total", Help: "Requests to cancel a call, by what became of them."}, []string{"result"}),
	}
	for _, kind := range refusals {
		m.refused.WithLabelValues(string(kind))
	}
	for _, state := range order {
		m.states.WithLabelValues(string(state))
	}
	for cause := range causes {
		m.causes.WithLabelValues(cause)
	}
	m.causes.WithLabelValues(other)
	for _, result := range []string{cancelHere, cancelElsewhere, cancelRefused, cancelFailed} {
		m.cancels.WithLabelValues(result)
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trunkline_origination_active", Help: "Calls of this node that have not ended, or are not stored and announced to their end."},
		func() float64 { return float64(active()) })
	reg.MustRegister(m.placed, m.refused, m.states, m.causes, m.bridged, m.cancels, open)
	return m
}

// stepped counts the last step of a call.
func (m *metrics) stepped(c *Call) {
	first, last := c.History[0], c.History[len(c.History)-1]
	m.states.WithLabelValues(string(last.State)).Inc()
	switch last.State {
	case Bridged:
		m.bridged.Observe(last.At.Sub(first.At.Time).Seconds())
	case Ended:
		cause := c.Cause
		if !causes[cause] {
			cause = other
		}
		m.causes.WithLabelValues(cause).Inc()
	}
}

// kindLabel is the error's kind where it is one that originations end with.
func kindLabel(err error) string {
	kind := fault.KindOf(err)
	for _, known := range refusals {
		if kind == known {
			return string(kind)
		}
	}
	return other
}
