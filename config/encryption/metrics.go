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
	changeEnabled  = "enabled"
	changeDisabled = "disabled"
	changeRotated  = "rotated"
	changeNone     = "kept"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		reads: f.Counter("trunkline_encryption_reads_total", "Encryption configurations handed out, keys included."),
		changes: f.CounterVec("trunkline_encryption_changes_total", "Changes of encryption configurations, by action.",
			"did"),
	}
	metric.Init(m.changes, changeEnabled, changeDisabled, changeRotated, changeNone)
	return m
}

func (m *metrics) countChange(old, next *accountConfig) {
	change := changeNone
	switch {
	case next.version() > old.version() && old.version() > 0:
		change = changeRotated
	case next.enabled && !old.enabled:
		change = changeEnabled
	case !next.enabled && (old.enabled || !old.exists):
		change = changeDisabled
	}

	m.changes.WithLabelValues(change).Inc()
}
