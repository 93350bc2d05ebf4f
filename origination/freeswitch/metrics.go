package freeswitch

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// metrics has the metrics that package eventdriver does not have.
type metrics struct {
	withoutTable prometheus.Counter // comparisons for which the switch did not list its channels

	sessionsPerSecond prometheus.Gauge // the switch's limit, as configured there; 0: unknown
	queued            prometheus.Gauge
	queueSeconds      prometheus.Histogram
	queueRefused      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	return &metrics{
		withoutTable: f.Counter("trunkline_origination_freeswitch_tableless_total",
			"Comparisons for which the switch did not return its channel table."),
		sessionsPerSecond: f.Gauge("trunkline_origination_freeswitch_sessions_per_second",
			"The switch's sessions-per-second, which paces calls; 0: unknown."),
		queued: f.Gauge("trunkline_origination_freeswitch_queued", "Calls queued by pacing."),
		queueSeconds: f.Histogram("trunkline_origination_freeswitch_queue_seconds",
			"Time that queued calls waited.", .1, .25, .5, 1, 2, 4, 8),
		queueRefused: f.Counter("trunkline_origination_freeswitch_queue_refused_total",
			"Calls refused because they would have waited too long."),
	}
}
