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

// Results of cancel requests.
const (
	cancelHere      = "here"
	cancelElsewhere = "elsewhere" // another node has the call
	cancelRefused   = "refused"
	cancelFailed    = "failed"
)

// refusals has the error kinds of failed originations.
var refusals = [...]fault.Kind{
	fault.KindInvalid, fault.KindForbidden, fault.KindConflict, fault.KindUnprocessable,
	fault.KindLimited, fault.KindInternal, fault.KindRefused, fault.KindUnavailable,
}

// causes has the causes with a metric label of their own; others are counted as "other".
var causes = map[string]bool{
	"NORMAL_CLEARING": true, "USER_BUSY": true, "NO_ANSWER": true, "NO_USER_RESPONSE": true, "CALL_REJECTED": true,
	CauseAbsent: true, "UNALLOCATED_NUMBER": true, CauseCancelled: true, CauseLost: true, CauseUnknown: true,
}

const otherLabel = "other"

func newMetrics(reg prometheus.Registerer, active func() int) *metrics {
	m := &metrics{
		placed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_accepted_total", Help: "Calls that the platform has accepted."}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_refused_total", Help: "Orders that were refused or failed, by kind of error."}, []string{"kind"}),
		states: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_states_total", Help: "State changes of calls, by new state."}, []string{"state"}),
		causes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_ended_total", Help: "Calls that have ended, by cause."}, []string{"cause"}),
		bridged: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_origination_bridged_seconds", Help: "Time from accepted to bridged.",
			Buckets: []float64{.5, 1, 2, 5, 10, 20, 30, 60, 120}}),
		cancels: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_cancels_total", Help: "Cancel requests, by result."}, []string{"result"}),
	}
	for _, kind := range refusals {
		m.refused.WithLabelValues(string(kind))
	}
	for _, state := range states {
		m.states.WithLabelValues(string(state))
	}
	for cause := range causes {
		m.causes.WithLabelValues(cause)
	}
	m.causes.WithLabelValues(otherLabel)
	for _, result := range []string{cancelHere, cancelElsewhere, cancelRefused, cancelFailed} {
		m.cancels.WithLabelValues(result)
	}
	open := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trunkline_origination_active", Help: "Calls of this node that have not ended, or whose end is not stored and published yet."},
		func() float64 { return float64(active()) })
	reg.MustRegister(m.placed, m.refused, m.states, m.causes, m.bridged, m.cancels, open)
	return m
}

// newRefusedCalls returns the counter of an Admission.
func newRefusedCalls(reg prometheus.Registerer) *prometheus.CounterVec {
	refused := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_origination_limited_total",
		Help: "Calls of users refused because of a limit or a blocked destination, by origin and reason.",
	}, []string{"door", "reason"})
	for _, door := range []Door{DoorREST, DoorSIP, DoorTransfer} {
		for _, reason := range []Reason{ReasonUserCalls, ReasonAccountCalls, ReasonPerMinute, ReasonInternational, ReasonPremium, ReasonRules} {
			refused.WithLabelValues(string(door), string(reason))
		}
	}
	reg.MustRegister(refused)
	return refused
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
			cause = otherLabel
		}
		m.causes.WithLabelValues(cause).Inc()
	}
}

// kindLabel returns the metric label of an error's kind.
func kindLabel(err error) string {
	kind := fault.KindOf(err)
	for _, known := range refusals {
		if kind == known {
			return string(kind)
		}
	}
	return otherLabel
}
