package stats

import (
	"fmt"
	"slices"
	"testing"

	"trunkline/internal/fault"
)

func TestWrongAlertsAreRefusedFieldByField(t *testing.T) {
	for want, rule := range map[string]AlertRule{
		"alerts[0].name required":           {When: AlertWhen{Metric: MetricWaiting, Above: limit(1)}},
		"alerts[0].when.metric unsupported": {Name: "x", When: AlertWhen{Metric: "wait", Above: limit(1)}},
		"alerts[0].when.above required":     {Name: "x", When: AlertWhen{Metric: MetricWaiting}},
		"alerts[0].when.below out_of_range": {Name: "x",
			When: AlertWhen{Metric: MetricServiceLevel, Below: limit(80)}},
		"alerts[0].when.below unsupported": {Name: "x",
			When: AlertWhen{Metric: MetricLongestWait, Below: limit(80)}},
		"alerts[0].when.for_seconds out_of_range": {Name: "x",
			When: AlertWhen{Metric: MetricWaiting, Above: limit(1), ForSeconds: -1}},
		"alerts[0].when.state unsupported": {Name: "x",
			When: AlertWhen{Metric: MetricAgentState, Above: limit(1), State: "lunch"}},
		"alerts[0].agents unsupported": {Name: "x", When: AlertWhen{Metric: MetricWaiting, Above: limit(1)},
			Agents: []string{"a"}},
		"alerts[0].queues[1] invalid": {Name: "x", When: AlertWhen{Metric: MetricWaiting, Above: limit(1)},
			Queues: []string{"a", ""}},
	} {
		err := checkAlerts([]AlertRule{rule})
		if got := faultsOf(err); !slices.Contains(got, want) {
			t.Errorf("%+v: %v, want %s", rule, got, want)
		}
	}

	if err := checkAlerts(DefaultAlerts()); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	if err := checkAlerts(modelRules()); err != nil {
		t.Error(err)
	}
	if got := faultsOf(checkAlerts(make([]AlertRule, maxAlerts+1))); fmt.Sprint(got) != "[alerts too_many]" {
		t.Error(got)
	}
}

func faultsOf(err error) (fields []string) {
	for _, one := range fault.As(err).Fields {
		fields = append(fields, one.Field+" "+one.Code)
	}
	return fields
}
