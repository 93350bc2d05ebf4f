package aiprovider

import "github.com/prometheus/client_golang/prometheus"

type metrics struct{ changes *prometheus.CounterVec }

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{changes: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_aiprovider_changes_total",
		Help: "Changes of AI providers, by action.",
	}, []string{"did"})}
	for _, did := range []string{actionCreate, actionReplace, actionDelete} {
		m.changes.WithLabelValues(did)
	}
	reg.MustRegister(m.changes)
	return m
}
