package app

import "github.com/prometheus/client_golang/prometheus"

func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "trunkline_build_info", Help: "1; the version is the label."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	return info
}

// readyGauge shows the state of /readyz.
func readyGauge(h *health) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trunkline_ready", Help: "1 when /readyz answers 200, else 0."}, func() float64 { return bit(h.unready() == "") })
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// spanCounts count what became of spans.
type spanCounts struct{ sent, failed, dropped prometheus.Counter }

func newSpanCounts(reg prometheus.Registerer) (*spanCounts, error) {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_tracing_spans_total",
		Help: "Spans of sampled traces, by result: sent, failed (the collector did not accept them), dropped (the queue was full). Only with tracing on.",
	}, []string{"result"})
	if err := reg.Register(spans); err != nil {
		return nil, err
	}
	return &spanCounts{spans.WithLabelValues("sent"), spans.WithLabelValues("failed"), spans.WithLabelValues("dropped")}, nil
}
