package app

import "github.com/prometheus/client_golang/prometheus"

func buildInfo(version string) prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "trunkline_build_info", Help: "1; the version is the label."}, []string{"version"})
	info.WithLabelValues(version).Set(1)
	return info
}

// readyGauge says what /readyz says.
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

// watchMetrics are what the watch sees.
type watchMetrics struct {
	up     *prometheus.GaugeVec // dependency
	skew   *prometheus.GaugeVec // against
	expiry *prometheus.GaugeVec // certificate
	free   prometheus.Gauge
	size   prometheus.Gauge
}

func newWatchMetrics(reg prometheus.Registerer) *watchMetrics {
	m := &watchMetrics{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_dependency_up", Help: "1 when a part that the node needs answers, and its disk has room, else 0."}, []string{"dependency"}),
		skew: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_clock_skew_seconds", Help: "By how much another clock is at least ahead of this node's; negative: behind."}, []string{"against"}),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_certificate_expiry_timestamp_seconds", Help: "When a certificate that the node shows expires, in Unix time, by setting."}, []string{"certificate"}),
		free: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_data_dir_free_bytes", Help: "Room left on the disk of data_dir."}),
		size: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_data_dir_size_bytes", Help: "Size of the disk of data_dir."}),
	}
	reg.MustRegister(m.up, m.skew, m.expiry, m.free, m.size)
	return m
}

// spanCounts count what became of spans.
type spanCounts struct{ sent, failed, dropped prometheus.Counter }

func newSpanCounts(reg prometheus.Registerer) (*spanCounts, error) {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_tracing_spans_total",
		Help: "Spans of sampled traces, by what became of them: sent, failed (the collector did not take them), dropped (too many waited). Only with tracing on.",
	}, []string{"result"})
	if err := reg.Register(spans); err != nil {
		return nil, err
	}
	return &spanCounts{spans.WithLabelValues("sent"), spans.WithLabelValues("failed"), spans.WithLabelValues("dropped")}, nil
}
