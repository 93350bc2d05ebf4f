package panics

import "github.com/prometheus/client_golang/prometheus"

func newTotal() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_recovered_panics_total",
		Help: "Panics recovered, by place; each ended one call, session or message.",
	}, []string{"where"})
}
