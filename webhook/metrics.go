package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

type metrics struct {
	requests  *prometheus.CounterVec // result
	seconds   prometheus.Histogram
	pausedNow prometheus.Gauge   // of the whole cluster
	pauses    prometheus.Counter // by this node
	behind    prometheus.Gauge
	lost      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		requests: f.CounterVec("trunkline_webhook_requests_total",
			"Requests to webhooks, by result: ok, status, redirect, gone, timeout, address (not one that may be reached) or connection.",
			"result"),
		seconds: f.NewHistogram(
			metric.NativeHistogram("trunkline_webhook_request_seconds", "Duration of requests to webhooks.", 160)),
		pausedNow: f.Gauge("trunkline_webhook_paused", "Webhooks that are paused, of the whole cluster."),
		pauses: f.Counter("trunkline_webhook_pauses_total",
			"Webhooks that this node has paused, after failures or a status 410."),
		behind: f.Gauge("trunkline_webhook_behind",
			"Pairs of a webhook and a partition of this node with events that are not delivered yet, without those of paused webhooks."),
		lost: f.Counter("trunkline_webhook_lost_records_total",
			"Records of cc.evt that were deleted, cut off or damaged before they were read for webhooks."),
	}
	metric.Init(m.requests, resultOK, resultStatus, resultRedirect, resultGone, resultTimeout, resultForbiddenAddress,
		resultConnection)

	return m
}
