package panics

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

func newTotal(reg prometheus.Registerer) *prometheus.CounterVec {
	return metric.Share(reg, metric.With(nil).CounterVec("trunkline_recovered_panics_total",
		"Panics recovered, by place; each ended one call, session or message.", "where"))
}
