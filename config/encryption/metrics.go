package encryption

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

type metrics struct {
	reads   prometheus.Counter
	changes *prometheus.CounterVec
}

// Kinds of changes, as metric labels.
const (
	didEnable  = "enabled"
	didDisable = "disabled"
	didRotate  = "rotated"
	didNothing = "kept"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		reads:   f.Counter("trunkline_encryption_reads_total", "Encryption configurations handed out, keys included."),
		changes: f.CounterVec("trunkline_encryption_changes_total", "Changes of encryption configurations, by action.", "did"),
	}
	metric.Init(m.changes, didEnable, didDisable, didRotate, didNothing)
	return m
}

func (m *metrics) changed(old, next *state) {
	did := didNothing
	switch {
	case next.version() > old.version() && old.version() > 0:
		did = didRotate
	case next.enabled && !old.enabled:
		did = didEnable
	case !next.enabled && (old.enabled || !old.exists):
		did = didDisable
	}
	m.changes.WithLabelValues(did).Inc()
}
