package embedded

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

type metrics struct {
	writable     prometheus.Gauge // 1 or 0
	syncFailures prometheus.Counter
	truncated    prometheus.Counter // bytes
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		writable: f.Gauge("trunkline_embedded_broker_writable",
			"1 while the embedded broker takes writes, 0 after it could not sync its log to disk."),
		syncFailures: f.Counter("trunkline_embedded_broker_sync_failures_total",
			"Failed syncs of the embedded broker's log to disk."),
		truncated: f.Counter("trunkline_embedded_broker_truncated_bytes_total",
			"Bytes that the embedded broker cut from its log at start because they were damaged or incomplete."),
	}
	m.writable.Set(1)

	return m
}
