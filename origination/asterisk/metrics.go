package asterisk

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/origination"
)

type metrics struct {
	connected  prometheus.Gauge
	calls      prometheus.Gauge
	originates *prometheus.CounterVec
	cancels    prometheus.Counter
	progress   *prometheus.CounterVec
	looks      *prometheus.CounterVec
	gone       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_asterisk_connected", Help: "1 while the manager interface is connected."}),
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_asterisk_calls", Help: "Open calls."}),
		originates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_asterisk_originates_total", Help: "Originate requests, by result: accepted, or the kind of error."}, []string{"result"}),
		cancels: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_asterisk_cancels_total", Help: "Cancel requests."}),
		progress: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_asterisk_progress_total", Help: "State changes of calls, by new state."}, []string{"state"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_asterisk_looks_total", Help: "Comparisons with Asterisk's channels, by reason."}, []string{"why"}),
		gone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_asterisk_gone_total", Help: "Calls whose end was found by comparison and not reported by an event."}),
	}
	reg.MustRegister(m.connected, m.calls, m.originates, m.cancels, m.progress, m.looks, m.gone)
	for _, result := range []string{"accepted", string(fault.KindInvalid), string(fault.KindConflict), string(fault.KindRefused),
		string(fault.KindUnavailable), string(fault.KindInternal)} {
		m.originates.WithLabelValues(result)
	}
	for _, state := range []origination.State{origination.RingingUser, origination.UserAnswered, origination.Dialling,
		origination.Bridged, origination.Ended} {
		m.progress.WithLabelValues(string(state))
	}
	for _, why := range []string{lookConnected, lookPeriodic, lookAdopted} {
		m.looks.WithLabelValues(why)
	}
	return m
}

func (m *metrics) originated(err error) {
	result := "accepted"
	if err != nil {
		result = string(fault.KindOf(err))
	}
	m.originates.WithLabelValues(result).Inc()
}

func (m *metrics) reported(p origination.Progress) {
	m.progress.WithLabelValues(string(p.State)).Inc()
}
