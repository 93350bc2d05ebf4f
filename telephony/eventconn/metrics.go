package eventconn

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// Metrics has the metrics of a protocol's connections.
type Metrics struct {
	connected prometheus.Gauge
	ended     *prometheus.CounterVec
	requests  *prometheus.CounterVec
	Events    prometheus.Counter
}

// newMetrics returns the metrics of a registry, which all clients of the protocol share; those of a nil
// registry are not exported.
func newMetrics(reg prometheus.Registerer, c *Config) *Metrics {
	f := metric.With(nil)
	title := strings.ToUpper(c.Name[:1]) + c.Name[1:]
	prefix := "trunkline_" + c.Protocol
	m := &Metrics{
		connected: metric.Share(reg, f.Gauge(prefix+"_connections", title+" connections that are logged in.")),
		ended: metric.Share(reg,
			f.CounterVec(prefix+"_connections_ended_total",
				title+" connections that ended, or could not be made, by reason.", "reason")),
		requests: metric.Share(reg,
			f.CounterVec(prefix+"_"+c.Requests+"_total", "Requests sent over the "+c.Name+", by result.", "result")),
		Events: metric.Share(reg, f.Counter(prefix+"_events_total", "Events received over the "+c.Name+".")),
	}

	m.ended.WithLabelValues("broken")
	for label := range c.Errors.Labels {
		m.ended.WithLabelValues(label)
	}

	metric.Init(m.requests, "ok", "refused", "timeout", "busy", "broken")
	return m
}
