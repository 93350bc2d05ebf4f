package webhook

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	requests *prometheus.CounterVec
	seconds  prometheus.Histogram
	paused   prometheus.Gauge
	pauses   prometheus.Counter
	behind   prometheus.Gauge
	lost     prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_webhook_requests_total",
			Help: "Requests to webhooks, by result: ok, status, redirect, gone, timeout, address (not one that may be reached) or connection.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_webhook_request_seconds", Help: "Duration of requests to webhooks.",
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
		}),
		paused: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_webhook_paused", Help: "Webhooks that are paused, of the whole cluster.",
		}),
		pauses: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_webhook_pauses_total", Help: "Webhooks that this node has paused, after failures or a status 410.",
		}),
		behind: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_webhook_behind", Help: "Pairs of a webhook and a partition of this node with events that are not delivered yet, without those of paused webhooks.",
		}),
		lost: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_webhook_lost_records_total", Help: "Records of cc.evt that were deleted, cut off or damaged before they were read for webhooks.",
		}),
	}
	for _, result := range []string{resultOK, resultStatus, resultRedirect, resultGone, resultTimeout, resultAddress, resultConnection} {
		m.requests.WithLabelValues(result)
	}
	var failed []error
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.paused, m.pauses, m.behind, m.lost} {
		failed = append(failed, reg.Register(c))
	}
	return m, errors.Join(failed...)
}
