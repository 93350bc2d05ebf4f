package embedded

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	writable     prometheus.Gauge
	syncFailures prometheus.Counter
	truncated    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		writable: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_embedded_broker_writable", Help: "1 while the embedded broker takes writes, 0 after it could not sync its log to disk."}),
		syncFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_embedded_broker_sync_failures_total", Help: "Failed syncs of the embedded broker's log to disk."}),
		truncated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_embedded_broker_truncated_bytes_total", Help: "Bytes that the embedded broker cut from its log at start because they were damaged or incomplete."}),
	}
	m.writable.Set(1)
	if reg != nil {
		reg.MustRegister(m.writable, m.syncFailures, m.truncated)
	}
	return m
}
