package eventdriver

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

// newMetrics returns the metrics of a driver, named trunkline_origination_NAME_.
func newMetrics(reg prometheus.Registerer, name string) *metrics {
	name = "trunkline_origination_" + name
	m := &metrics{
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: name + "_connected", Help: "1 while the phone platform is connected."}),
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: name + "_calls", Help: "Open calls."}),
		originates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name + "_originates_total", Help: "Originate requests, by result: accepted, or the kind of error."}, []string{"result"}),
		cancels: prometheus.NewCounter(prometheus.CounterOpts{
			Name: name + "_cancels_total", Help: "Cancel requests."}),
		progress: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name + "_progress_total", Help: "State changes of calls, by new state."}, []string{"state"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: name + "_looks_total", Help: "Comparisons with the phone platform's channels, by reason."}, []string{"why"}),
		gone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: name + "_gone_total", Help: "Calls whose end was found by comparison and not reported by an event."}),
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
	for _, why := range []string{WhyConnected, WhyPeriodic, WhyGap, WhyAdopted} {
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
