package freeswitch

import "github.com/prometheus/client_golang/prometheus"

// metrics are those that package eventdriver does not have.
type metrics struct {
	tableless prometheus.Counter
	missed    prometheus.Counter

	sessionsPerSecond prometheus.Gauge
	queued            prometheus.Gauge
	queueSeconds      prometheus.Histogram
	queueRefused      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		tableless: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_freeswitch_tableless_total", Help: "Comparisons for which the switch did not return its channel table."}),
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
	reg.MustRegister(m.sessionsPerSecond, m.queued, m.queueSeconds, m.queueRefused, m.tableless, m.missed)
	return m
}
