package origination

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/internal/metric"
)

type metrics struct {
	placed  prometheus.Counter
	refused *prometheus.CounterVec // orders, by kind of error
	states  *prometheus.CounterVec // changes, by new state
	causes  *prometheus.CounterVec // ended calls
	bridged prometheus.Histogram   // seconds from accepted to bridged
	cancels *prometheus.CounterVec // by result: cancelHere and the others
}

// Results of cancel requests.
const (
	cancelHere      = "here"
	cancelElsewhere = "elsewhere" // another node has the call
	cancelRefused   = "refused"
	cancelFailed    = "failed"
)

// refusalKinds has the error kinds of failed originations.
var refusalKinds = [...]fault.Kind{
	fault.KindInvalid, fault.KindForbidden, fault.KindConflict, fault.KindUnprocessable,
	fault.KindLimited, fault.KindInternal, fault.KindRefused, fault.KindUnavailable,
}

// labelledCauses has the causes with a metric label of their own; others are counted as "other".
var labelledCauses = map[string]bool{
	"NORMAL_CLEARING": true, "USER_BUSY": true, "NO_ANSWER": true, "NO_USER_RESPONSE": true, "CALL_REJECTED": true,
	CauseAbsent: true, "UNALLOCATED_NUMBER": true, CauseCancelled: true, CauseLost: true, CauseUnknown: true,
}

const otherLabel = "other"

func newMetrics(reg prometheus.Registerer, active func() int) *metrics {
	f := metric.With(reg)
	m := &metrics{
		placed: f.Counter("trunkline_origination_accepted_total", "Calls that the platform has accepted."),
		refused: f.CounterVec("trunkline_origination_refused_total",
			"Orders that were refused or failed, by kind of error.", "kind"),
		states: f.CounterVec("trunkline_origination_states_total", "State changes of calls, by new state.", "state"),
		causes: f.CounterVec("trunkline_origination_ended_total", "Calls that have ended, by cause.", "cause"),
		bridged: f.Histogram("trunkline_origination_bridged_seconds", "Time from accepted to bridged.", .5, 1, 2, 5, 10,
			20, 30, 60, 120),
		cancels: f.CounterVec("trunkline_origination_cancels_total", "Cancel requests, by result.", "result"),
	}
	metric.Init(m.refused, refusalKinds[:]...)
	metric.Init(m.states, states[:]...)

	for cause := range labelledCauses {
		m.causes.WithLabelValues(cause)
	}

	m.causes.WithLabelValues(otherLabel)
	metric.Init(m.cancels, cancelHere, cancelElsewhere, cancelRefused, cancelFailed)
	f.GaugeFunc("trunkline_origination_active",
		"Calls of this node that have not ended, or whose end is not stored and published yet.",
		func() float64 { return float64(active()) })

	return m
}

// newRefusedCalls returns the counter of an Admission.
func newRefusedCalls(reg prometheus.Registerer) *prometheus.CounterVec {
	refused := metric.With(reg).CounterVec("trunkline_origination_limited_total",
		"Calls of users refused because of a limit or a blocked destination, by origin and reason.", "origin", "reason")
	for _, origin := range []Origin{OriginREST, OriginSIP, OriginTransfer} {
		for _, reason := range []Reason{ReasonUserCalls, ReasonAccountCalls, ReasonPerMinute, ReasonInternational,
			ReasonNoCountry, ReasonPremium, ReasonRules} {
			refused.WithLabelValues(string(origin), string(reason))
		}
	}
	return refused
}

// countStep counts the last step of a call.
func (m *metrics) countStep(c *Call) {
	first, last := c.History[0], c.History[len(c.History)-1]
	m.states.WithLabelValues(string(last.State)).Inc()
	switch last.State {
	case Bridged:
		m.bridged.Observe(last.At.Sub(first.At.Time).Seconds())
	case Ended:
		cause := c.Cause
		if !labelledCauses[cause] {
			cause = otherLabel
		}
		m.causes.WithLabelValues(cause).Inc()
	}
}

// kindLabel returns the metric label of an error's kind.
func kindLabel(err error) string {
	kind := fault.KindOf(err)
	for _, known := range refusalKinds {
		if kind == known {
			return string(kind)
		}
	}
	return otherLabel
}
