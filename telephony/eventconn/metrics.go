package eventconn

import (
	"errors"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
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
func newMetrics(reg prometheus.Registerer, c *Config) (*Metrics, error) {
	title := strings.ToUpper(c.Name[:1]) + c.Name[1:]
	prefix := "trunkline_" + c.Protocol
	var faults []error
	m := &Metrics{
		connected: register(reg, &faults, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: prefix + "_connections", Help: title + " connections that are logged in."})),
		ended: register(reg, &faults, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_connections_ended_total", Help: title + " connections that ended, or could not be made, by reason."}, []string{"reason"})),
		requests: register(reg, &faults, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: prefix + "_" + c.Requests + "_total", Help: "Requests sent over the " + c.Name + ", by result."}, []string{"result"})),
		Events: register(reg, &faults, prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + "_events_total", Help: "Events received over the " + c.Name + "."})),
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	m.ended.WithLabelValues("broken")
	for label := range c.Errors.Labels {
		m.ended.WithLabelValues(label)
	}
	for _, result := range []string{"ok", "refused", "timeout", "busy", "broken"} {
		m.requests.WithLabelValues(result)
	}
	return m, nil
}

// register returns the collector that the registry has: c, or an equal one from before.
func register[C prometheus.Collector](reg prometheus.Registerer, faults *[]error, c C) C {
	if reg == nil {
		return c
	}
	err := reg.Register(c)
	var before prometheus.AlreadyRegisteredError
	if errors.As(err, &before) {
		if existing, ok := before.ExistingCollector.(C); ok {
			return existing
		}
	}
	if err != nil {
		*faults = append(*faults, err)
	}
	return c
}
