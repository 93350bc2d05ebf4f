package pbx

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
	"trunkline/telephony/sip"
)

type metrics struct {
	calls   prometheus.Gauge       // being set up or connected
	ended   *prometheus.CounterVec // calls, by cause and whether they had been bridged
	waiting prometheus.Gauge       // records and events in the outbox
	lost    prometheus.Counter     // records and events
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		calls: f.Gauge("trunkline_origination_sip_calls",
			"Calls being set up or connected, click to call and ordinary ones."),
		ended: f.CounterVec("trunkline_origination_sip_calls_ended_total",
			"Calls ended, by cause and whether they had been bridged.", "cause", "bridged"),
		waiting: f.Gauge("trunkline_origination_sip_outbox", "Call records and events waiting to be published."),
		lost: f.Counter("trunkline_origination_sip_records_lost_total",
			"Call records and events lost because the outbox was full or the process ended."),
	}

	for _, cause := range []sip.Cause{sip.NormalClearing, sip.OriginatorCancel, sip.SubscriberAbsent, sip.NoAnswer,
		sip.UserBusy} {
		m.ended.WithLabelValues(string(cause), "false")
	}

	m.ended.WithLabelValues(string(sip.NormalClearing), "true")
	return m
}
