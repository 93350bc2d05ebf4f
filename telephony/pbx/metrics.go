package pbx

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/telephony/sip"
)

type metrics struct {
	calls   prometheus.Gauge
	ended   *prometheus.CounterVec // by cause
	waiting prometheus.Gauge
	lost    prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		calls: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_sip_calls",
			Help: "Calls being set up or connected, click to call and ordinary ones.",
		}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_origination_sip_calls_ended_total",
			Help: "Calls ended, by cause and whether they had been bridged.",
		}, []string{"cause", "bridged"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_origination_sip_outbox",
			Help: "Call records and events waiting to be published.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_origination_sip_records_lost_total",
			Help: "Call records and events lost because the outbox was full or the process ended.",
		}),
	}
	for _, cause := range []sip.Cause{sip.NormalClearing, sip.OriginatorCancel, sip.SubscriberAbsent, sip.NoAnswer, sip.UserBusy} {
		m.ended.WithLabelValues(string(cause), "false")
	}
	m.ended.WithLabelValues(string(sip.NormalClearing), "true")
	for _, c := range []prometheus.Collector{m.calls, m.ended, m.waiting, m.lost} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
