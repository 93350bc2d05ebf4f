package selfcheck

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// metrics show the state of all checks. The comment of a GaugeVec is its label.
type metrics struct {
	up     *prometheus.GaugeVec // dependency
	skew   *prometheus.GaugeVec // against
	expiry *prometheus.GaugeVec // certificate
	free   prometheus.Gauge
	size   prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	f := metric.With(registerer)
	return &metrics{
		up: f.GaugeVec("trunkline_dependency_up",
			"1 when database, redis, kafka or recordings (an S3-compatible store, with its bucket) answers, or disk has free space, else 0; checked every 5 s.",
			"dependency"),
		skew: f.GaugeVec("trunkline_clock_skew_seconds",
			"How far the clock of database (PostgreSQL), redis or kafka (by its timestamps) is at least ahead of this node's; negative: behind.",
			"against"),
		expiry: f.GaugeVec("trunkline_certificate_expiry_timestamp_seconds",
			"When a certificate that the node presents expires, in Unix time, by setting: tls.cert_file (self-signed too), kafka.tls.cert_file, redis.tls.cert_file.",
			"certificate"),
		free: f.Gauge("trunkline_data_dir_free_bytes", "Free space on the disk of data_dir."),
		size: f.Gauge("trunkline_data_dir_size_bytes", "Size of the disk of data_dir."),
	}
}

func (m *metrics) setUp(name string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(name).Set(value)
}
