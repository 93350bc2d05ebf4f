package selfcheck

import "github.com/prometheus/client_golang/prometheus"

// metrics show the state of all checks.
type metrics struct {
	up     *prometheus.GaugeVec // dependency
	skew   *prometheus.GaugeVec // against
	expiry *prometheus.GaugeVec // certificate
	free   prometheus.Gauge
	size   prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_dependency_up", Help: "1 when a dependency of the node answers and its disk has free space, else 0."}, []string{"dependency"}),
		skew: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_clock_skew_seconds", Help: "How far another clock is at least ahead of this node's; negative: behind."}, []string{"against"}),
		expiry: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_certificate_expiry_timestamp_seconds", Help: "When a certificate that the node presents expires, in Unix time, by setting."}, []string{"certificate"}),
		free: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_data_dir_free_bytes", Help: "Free space on the disk of data_dir."}),
		size: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_data_dir_size_bytes", Help: "Size of the disk of data_dir."}),
	}
	for _, collector := range []prometheus.Collector{m.up, m.skew, m.expiry, m.free, m.size} {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) setUp(name string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(name).Set(value)
}
