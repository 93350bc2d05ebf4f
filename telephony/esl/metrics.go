package esl

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	connected prometheus.Gauge
	ended     *prometheus.CounterVec
	commands  *prometheus.CounterVec
	events    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		connected: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_esl_connections", Help: "Event socket connections that are logged in."}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_esl_connections_ended_total", Help: "Event socket connections that ended, or could not be made, by reason."}, []string{"reason"}),
		commands: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_esl_commands_total", Help: "Commands sent, by result."}, []string{"result"}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_esl_events_total", Help: "Events received."}),
	}
	if reg != nil {
		reg.MustRegister(m.connected, m.ended, m.commands, m.events)
	}
	for _, name := range []string{"denied", "rejected", "disconnect", "malformed", "too_large", "slow", "closed", "broken"} {
		m.ended.WithLabelValues(name)
	}
	for _, result := range []string{"ok", "refused", "timeout", "busy", "broken"} {
		m.commands.WithLabelValues(result)
	}
	return m
}
