package encryption

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	reads   prometheus.Counter
	changes *prometheus.CounterVec
}

// What a change did.
const (
	didEnable  = "enabled"
	didDisable = "disabled"
	didRotate  = "rotated"
	didNothing = "kept"
)

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		reads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_encryption_reads_total",
			Help: "Encryption configurations handed out, keys included.",
		}),
		changes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_encryption_changes_total",
			Help: "Changes of encryption configurations, by action.",
		}, []string{"did"}),
	}
	for _, did := range []string{didEnable, didDisable, didRotate, didNothing} {
		m.changes.WithLabelValues(did)
	}
	reg.MustRegister(m.reads, m.changes)
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
