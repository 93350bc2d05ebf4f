package ami

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	connected prometheus.Gauge
	ended     *prometheus.CounterVec
	actions   *prometheus.CounterVec
	events    prometheus.Counter
}

// newMetrics returns the metrics of a registry, which all its clients share.
func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	var faults []error
	m := &metrics{
		connected: register(reg, &faults, prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_ami_connections", Help: "Manager interface connections that are logged in."})),
		ended: register(reg, &faults, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_ami_connections_ended_total", Help: "Manager interface connections that ended, or could not be made, by reason."}, []string{"reason"})),
		actions: register(reg, &faults, prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_ami_actions_total", Help: "Actions sent, by result."}, []string{"result"})),
		events: register(reg, &faults, prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_ami_events_total", Help: "Events received, those of lists included."})),
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	for _, name := range []string{"denied", "malformed", "too_large", "slow", "silent", "closed", "broken"} {
		m.ended.WithLabelValues(name)
	}
	for _, result := range []string{"ok", "refused", "timeout", "busy", "broken"} {
		m.actions.WithLabelValues(result)
	}
	return m, nil
}

// register returns the collector that the registry has: c, or an equal one from before.
func register[C prometheus.Collector](reg prometheus.Registerer, faults *[]error, c C) C {
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
