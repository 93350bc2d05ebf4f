package audit

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

type metrics struct {
	entries  *prometheus.CounterVec
	failures prometheus.Counter
	pending  prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		entries: f.CounterVec("trunkline_audit_entries_total",
			"Entries of the audit log made by this process, by action.", "action"),
		failures: f.Counter("trunkline_audit_failures_total",
			"Audit entries that could not be stored in the database; those of refusals are in the log only. Alert on any."),
		pending: f.Gauge("trunkline_audit_pending", "Entries of the audit log that are not in its chain yet."),
	}
	metric.Init(m.entries, actions...)

	return m
}
