package audit

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	entries  *prometheus.CounterVec
	failures prometheus.Counter
	pending  prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	factory := promauto.With(reg)
	m := &metrics{
		entries: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_audit_entries_total",
			Help: "Entries of the audit log made by this process, by action.",
		}, []string{"action"}),
		failures: factory.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_audit_failures_total",
			Help: "Audit entries that could not be stored in the database; those of refusals are in the log only. Alert on any.",
		}),
		pending: factory.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_audit_pending",
			Help: "Entries of the audit log that are not in its chain yet.",
		}),
	}
	for _, action := range actions {
		m.entries.WithLabelValues(string(action))
	}
	return m
}
