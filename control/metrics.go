package control

import (
	"github.com/prometheus/client_golang/prometheus"
)

// newMetrics returns the counter of actions.
func newMetrics(reg prometheus.Registerer) *prometheus.CounterVec {
	actions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trunkline_control_actions_total",
		Help: "Actions on agents and calls that callers asked for, by action and outcome: accepted, or the kind of the refusal.",
	}, []string{"action", "outcome"})
	reg.MustRegister(actions)
	return actions
}
