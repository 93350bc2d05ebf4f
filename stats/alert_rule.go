package stats

import (
	"fmt"
	"math"
	"slices"

	"trunkline/event"
	"trunkline/internal/fault"
	"trunkline/internal/report"
)

// Metric is what an alert watches.
type Metric string

// The metrics. Those of a queue are of each queue alone.
const (
	MetricWaiting         Metric = "waiting"              // callers in the queue
	MetricLongestWait     Metric = "longest_wait_seconds" // of the caller who has waited longest
	MetricServiceLevel    Metric = "service_level"        // 0 to 1, of the calls of the last hour
	MetricAbandoned       Metric = "abandoned"            // callers of the last hour who hung up
	MetricAgentsAvailable Metric = "agents_available"     // agents of the queue who could take a call
	MetricAgentState      Metric = "agent_state_seconds"  // since when an agent is in a state
	MetricFeedConnected   Metric = "feed_connected"       // 1 or 0
)

// AlertMetrics returns every metric, in the order of docs/alerts.md.
func AlertMetrics() []Metric {
	return []Metric{MetricWaiting, MetricLongestWait, MetricServiceLevel, MetricAbandoned, MetricAgentsAvailable,
		MetricAgentState, MetricFeedConnected}
}

// kind returns the kind of the entries that the metric watches.
func (m Metric) kind() kind {
	switch m {
	case MetricAgentState:
		return kindOpenAgent
	case MetricFeedConnected:
		return kindFeed
	}
	return kindQueue
}

// AlertRule says when an alert begins and ends, for each queue, agent or feed alone.
type AlertRule struct {
	Name   string    `json:"name"`
	When   AlertWhen `json:"when"`
	Queues []string  `json:"queues,omitempty"` // none: all
	Agents []string  `json:"agents,omitempty"` // none: all
}

// AlertWhen is the condition of an alert. One of Above and Below is set.
type AlertWhen struct {
	Metric       Metric      `json:"metric"`
	Above        *float64    `json:"above,omitempty"`
	Below        *float64    `json:"below,omitempty"`
	ForSeconds   int64       `json:"for_seconds"`             // how long the condition holds before the alert begins
	State        event.State `json:"state,omitempty"`         // of agents, with MetricAgentState
	WhileWaiting bool        `json:"while_waiting,omitempty"` // with MetricAgentsAvailable: only while callers wait
	// with MetricServiceLevel: of fewer calls there is no level
	MinCalls int64 `json:"min_calls,omitempty"`
}

// holds compares a value with the limit.
func (w *AlertWhen) holds(value float64) bool {
	if w.Above != nil {
		return value > *w.Above
	}
	return w.Below != nil && value < *w.Below
}

// limit returns a value of Above or Below.
func limit(value float64) *float64 { return &value }

// DefaultAlerts returns the rules of accounts for which none are configured.
func DefaultAlerts() []AlertRule {
	return []AlertRule{
		{Name: "Nobody is available and callers wait",
			When: AlertWhen{Metric: MetricAgentsAvailable, Below: limit(1), ForSeconds: 20, WhileWaiting: true}},
		{Name: "Longest wait", When: AlertWhen{Metric: MetricLongestWait, Above: limit(120)}},
		{Name: "Service level of the hour",
			When: AlertWhen{Metric: MetricServiceLevel, Below: limit(0.8), ForSeconds: 60, MinCalls: 10}},
		{Name: "Feed is down", When: AlertWhen{Metric: MetricFeedConnected, Below: limit(1), ForSeconds: 30}},
	}
}

// Bounds of the rules of an account.
const (
	maxAlerts          = 50
	maxAlertNameBytes  = 100  // bytes
	maxAlertIDs        = 1000 // queues or agents of a rule
	maxAlertForSeconds = 86_400
	maxLimit           = 1e9
)

var alertStates = []event.State{event.Available, event.Ringing, event.Talking, event.WrapUp, event.Break,
	event.OtherState}

// alertCheck collects the faults of rules.
type alertCheck struct {
	at     string
	faults []fault.Field
}

func (c *alertCheck) add(field, code, format string, args ...any) {
	c.faults = append(c.faults, fault.Field{Field: c.at + field, Code: code, Message: fmt.Sprintf(format, args...)})
}

// checkAlerts returns fault.KindInvalid with the invalid fields.
func checkAlerts(rules []AlertRule) error {
	if len(rules) > maxAlerts {
		return fault.InvalidField("alerts", "too_many", fmt.Sprintf("must be at most %d", maxAlerts))
	}

	c := &alertCheck{}
	names := map[string]bool{}
	for i := range rules {
		r := &rules[i]
		c.at = fmt.Sprintf("alerts[%d].", i)
		switch {
		case r.Name == "":
			c.add("name", "required", "must not be empty")
		case len(r.Name) > maxAlertNameBytes || !report.Storable(r.Name):
			c.add("name", "invalid", "must be text of at most %d bytes", maxAlertNameBytes)
		case names[r.Name]:
			c.add("name", "taken", "is in the list twice")
		}
		names[r.Name] = true

		c.checkIDs("queues", r.Queues, r.When.Metric.kind() != kindFeed)
		c.checkIDs("agents", r.Agents, r.When.Metric.kind() == kindOpenAgent)
		c.checkWhen(&r.When)
	}

	if len(c.faults) > 0 {
		return fault.Invalid("Invalid alerts", c.faults...)
	}

	return nil
}

func (c *alertCheck) checkIDs(field string, ids []string, allowed bool) {
	switch {
	case len(ids) > 0 && !allowed:
		c.add(field, "unsupported", "does not go with this metric")
	case len(ids) > maxAlertIDs:
		c.add(field, "too_many", "must be at most %d", maxAlertIDs)
	}

	for i, id := range ids {
		if id == "" || len(id) > maxTextBytes || !report.Storable(id) {
			c.add(fmt.Sprintf("%s[%d]", field, i), "invalid", "must be text of 1 to %d bytes", maxTextBytes)
		}
	}
}

func (c *alertCheck) checkWhen(w *AlertWhen) {
	if !slices.Contains(AlertMetrics(), w.Metric) {
		c.add("when.metric", "unsupported", "must be one of %v", AlertMetrics())
		return
	}

	c.checkLimits(w)
	if w.ForSeconds < 0 || w.ForSeconds > maxAlertForSeconds {
		c.add("when.for_seconds", "out_of_range", "must be 0 to %d", maxAlertForSeconds)
	}

	switch {
	case w.Metric == MetricAgentState && !slices.Contains(alertStates, w.State):
		c.add("when.state", "unsupported", "must be one of %v", alertStates)
	case w.Metric != MetricAgentState && w.State != "":
		c.add("when.state", "unsupported", "goes with %s alone", MetricAgentState)
	}

	if w.WhileWaiting && w.Metric != MetricAgentsAvailable {
		c.add("when.while_waiting", "unsupported", "goes with %s alone", MetricAgentsAvailable)
	}
	if w.MinCalls != 0 && w.Metric != MetricServiceLevel || w.MinCalls < 0 || w.MinCalls > maxLimit {
		c.add("when.min_calls", "unsupported", "must be 0 to %.0f and goes with %s alone", float64(maxLimit),
			MetricServiceLevel)
	}
}

func (c *alertCheck) checkLimits(w *AlertWhen) {
	field, value := "when.above", w.Above
	if w.Below != nil {
		field, value = "when.below", w.Below
	}

	grows := w.Metric == MetricLongestWait || w.Metric == MetricAgentState
	switch {
	case (w.Above == nil) == (w.Below == nil):
		c.add("when.above", "required", "must have either above or below")
	case math.IsNaN(*value) || *value < 0 || *value > maxLimit:
		c.add(field, "out_of_range", "must be 0 to %.0f", float64(maxLimit))
	case w.Metric == MetricServiceLevel && *value > 1:
		c.add(field, "out_of_range", "must be 0 to 1")
	case grows && w.Below != nil:
		c.add("when.below", "unsupported", "does not go with %s: it has above", w.Metric)
	case w.Metric == MetricFeedConnected && (w.Below == nil || *w.Below != 1):
		c.add(field, "unsupported", "of %s must be below 1", w.Metric)
	}
}
