package kafka_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kerr"
)

func TestMetricsCountWhatHappens(t *testing.T) {
	c, fake, reg := openFake(t)
	refuseOnce(fake, kerr.NotLeaderForPartition.Code)
	produce(t, c, numbered(0, 0, 10)...)
	readAll(t, c, "t", 0, 0)

	for name, want := range map[string]float64{
		"trunkline_kafka_produced_records_total":  10,
		"trunkline_kafka_consumed_records_total":  10,
		"trunkline_kafka_produce_retries_total":   1,
		"trunkline_kafka_produce_in_flight_bytes": 0,
	} {
		if got := metricValue(t, reg, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}

	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) != 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// metricValue returns the sum over a metric's labels.
func metricValue(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}

	for _, f := range families {
		if f.GetName() != name {
			continue
		}

		for _, m := range f.Metric {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}

		return sum
	}

	t.Errorf("no metric %s", name)
	return 0
}
