package eventconn

import (
	"context"
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// Metrics has the metrics of a protocol's connections.
type Metrics struct {
	connected prometheus.Gauge
	ended     *prometheus.CounterVec // by reason; failed attempts to connect too
	requests  *prometheus.CounterVec // by result
	Events    prometheus.Counter     // counted by Put, and by a protocol for events that it does not Put
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
	for label := range c.Errors.EndReasons {
		m.ended.WithLabelValues(label)
	}

	metric.Init(m.requests, "ok", "refused", "timeout", "busy", "broken")
	return m
}

// CountRequest counts a request by its result. refused means that the peer refused the request.
func (c *Config) CountRequest(err error, refused bool) {
	label := "broken"
	switch {
	case err == nil:
		label = "ok"
	case refused:
		label = "refused"
	case errors.Is(err, c.Errors.Timeout), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		label = "timeout"
	case errors.Is(err, c.Errors.Busy):
		label = "busy"
	}

	c.Metrics.requests.WithLabelValues(label).Inc()
}

// countEnd counts a connection that ended or could not be established.
func (c *Config) countEnd(err error) {
	for label, sentinel := range c.Errors.EndReasons {
		if errors.Is(err, sentinel) {
			c.Metrics.ended.WithLabelValues(label).Inc()
			return
		}
	}
	c.Metrics.ended.WithLabelValues("broken").Inc()
}
