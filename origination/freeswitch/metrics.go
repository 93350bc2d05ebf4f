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
			Name: "trunkline_origination_freeswitch_connected", Help: "1 while the event socket is connected and followed."}),
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_freeswitch_calls", Help: "Unfinished calls."}),
		originates: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_originates_total", Help: "Calls asked for, by result: accepted, or the kind of fault."}, []string{"result"}),
		cancels: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_cancels_total", Help: "Calls asked to be cancelled."}),
		progress: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_progress_total", Help: "Steps reported, by state."}, []string{"state"}),
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_looks_total", Help: "Comparisons with the switch's channels, by what led to them."}, []string{"why"}),
		tableless: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_tableless_total", Help: "Comparisons for which the switch did not show its channels."}),
		gone: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_gone_total", Help: "Calls whose end was not told by an event but found."}),
		missed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_missed_events_total", Help: "Events found missing in runs, with all_events only."}),
		sessionsPerSecond: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_freeswitch_sessions_per_second", Help: "New sessions per second that the switch allows, which calls are paced by; 0: not known."}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_freeswitch_queued", Help: "Calls that wait for their turn."}),
		queueSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_origination_freeswitch_queue_seconds", Help: "Time that calls which had to wait for their turn waited.",
			Buckets: []float64{.1, .25, .5, 1, 2, 4, 8}}),
		queueRefused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_queue_refused_total", Help: "Calls refused because their turn would have come too late."}),
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
