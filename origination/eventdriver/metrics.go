package eventdriver

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/internal/metric"
	"trunkline/origination"
)

type metrics struct {
	connected   prometheus.Gauge // 0 or 1
	calls       prometheus.Gauge
	originates  *prometheus.CounterVec // by result
	cancels     prometheus.Counter
	progress    *prometheus.CounterVec // reported steps, by state
	comparisons *prometheus.CounterVec // by reason
	gone        prometheus.Counter     // calls that comparisons ended
}

// newMetrics returns the metrics of a driver, named trunkline_origination_NAME_.
func newMetrics(reg prometheus.Registerer, name string) *metrics {
	f := metric.With(reg)
	name = "trunkline_origination_" + name
	m := &metrics{
		connected: f.Gauge(name+"_connected", "1 while the phone platform is connected."),
		calls:     f.Gauge(name+"_calls", "Open calls."),
		originates: f.CounterVec(name+"_originates_total",
			"Originate requests, by result: accepted, or the kind of error.", "result"),
		cancels:  f.Counter(name+"_cancels_total", "Cancel requests."),
		progress: f.CounterVec(name+"_progress_total", "State changes of calls, by new state.", "state"),
		comparisons: f.CounterVec(name+"_looks_total", "Comparisons with the phone platform's channels, by reason.",
			"reason"),
		gone: f.Counter(name+"_gone_total",
			"Calls whose end was found by comparison and not reported by an event."),
	}
	metric.Init(m.originates, "accepted")
	metric.Init(m.originates, fault.KindInvalid, fault.KindConflict, fault.KindRefused, fault.KindUnavailable,
		fault.KindInternal)
	metric.Init(m.progress, origination.RingingUser, origination.UserAnswered, origination.Dialling,
		origination.Bridged, origination.Ended)
	metric.Init(m.comparisons, ReasonConnected, ReasonPeriodic, ReasonAdopted)

	return m
}

func (m *metrics) countOriginate(err error) {
	result := "accepted"
	if err != nil {
		result = string(fault.KindOf(err))
	}
	m.originates.WithLabelValues(result).Inc()
}
