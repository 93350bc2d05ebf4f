package freeswitch

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
	tableless  prometheus.Counter
	gone       prometheus.Counter
	missed     prometheus.Counter

	sessionsPerSecond prometheus.Gauge
	queued            prometheus.Gauge
	queueSeconds      prometheus.Histogram
	queueRefused      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_freeswitch_connected", Help: "1 while the event socket is connected."}),
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_freeswitch_calls", Help: "Open calls."}),
		originates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_originates_total", Help: "Originate requests, by result: accepted, or the kind of error."}, []string{"result"}),
		cancels: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_cancels_total", Help: "Cancel requests."}),
		progress: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_progress_total", Help: "State changes of calls, by new state."}, []string{"state"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_looks_total", Help: "Comparisons with the switch's channel table, by reason."}, []string{"why"}),
		tableless: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_tableless_total", Help: "Comparisons for which the switch did not return its channel table."}),
		gone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_gone_total", Help: "Calls whose end was found by comparison and not reported by an event."}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_missed_events_total", Help: "Missing events detected by gaps in the sequence, with all_events only."}),
		sessionsPerSecond: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_freeswitch_sessions_per_second", Help: "The switch's sessions-per-second, which paces calls; 0: unknown."}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_freeswitch_queued", Help: "Calls queued by pacing."}),
		queueSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_origination_freeswitch_queue_seconds", Help: "Time that queued calls waited.",
			Buckets: []float64{.1, .25, .5, 1, 2, 4, 8}}),
		queueRefused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_queue_refused_total", Help: "Calls refused because they would have waited too long."}),
	}
	reg.MustRegister(m.sessionsPerSecond, m.queued, m.queueSeconds, m.queueRefused)
	reg.MustRegister(m.connected, m.calls, m.originates, m.cancels, m.progress, m.looks, m.tableless, m.gone, m.missed)
	for _, result := range []string{"accepted", string(fault.KindInvalid), string(fault.KindConflict), string(fault.KindRefused),
		string(fault.KindUnavailable), string(fault.KindInternal)} {
		m.originates.WithLabelValues(result)
	}
	for state := range rank {
		if state != origination.Accepted {
			m.progress.WithLabelValues(string(state))
		}
	}
	for _, why := range []string{lookConnected, lookPeriodic, lookGap, lookAdopted} {
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

func (m *metrics) attached(connected bool) {
	if connected {
		m.connected.Set(1)
		return
	}
	m.connected.Set(0)
}
