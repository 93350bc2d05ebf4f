package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// registerProcessMetrics registers the metrics of the version and of /readyz.
func registerProcessMetrics(reg prometheus.Registerer, version string, h *health) {
	f := metric.With(reg)
	f.GaugeVec("trunkline_build_info", "1; the version is the label.", "version").WithLabelValues(version).Set(1)
	f.GaugeFunc("trunkline_ready", "1 when /readyz answers 200, else 0.",
		func() float64 { return boolGauge(h.unreadyReason() == "") })
}

func boolGauge(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// spanCounts count the spans by outcome.
type spanCounts struct{ sent, failed, dropped prometheus.Counter }

func newSpanCounts(reg prometheus.Registerer) *spanCounts {
	spans := metric.With(reg).CounterVec("trunkline_tracing_spans_total",
		"Spans of sampled traces, by result: sent, failed (the collector did not accept them), dropped (the queue was full). Only with tracing on.",
		"result")
	return &spanCounts{spans.WithLabelValues("sent"), spans.WithLabelValues("failed"), spans.WithLabelValues("dropped")}
}
