package stats

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var queueLabels = []string{"account", "queue"}

func queueDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("trunkline_queue_"+name, help, queueLabels, nil)
}

var (
	descOffered  = queueDesc("offered_total", "Calls that entered the queue today (UTC).")
	descAnswered = queueDesc("answered_total",
		"Of the calls that entered the queue today, those that were answered.")
	descAbandoned = queueDesc("abandoned_total",
		"Of the calls that entered the queue today, those whose caller hung up, after a short wait too.")
	descAbandonedShort = queueDesc("abandoned_short_total",
		"Of the abandoned calls, those after a wait within the short limit.")
	descAnsweredWithin = queueDesc("answered_within_total",
		"Of the answered calls, those within the service level's limit.")
	descWait        = queueDesc("answered_wait_seconds_total", "Waits of the answered calls.")
	descAbandonWait = queueDesc("abandoned_wait_seconds_total", "Waits of the abandoned calls.")
	descWaiting     = queueDesc("waiting", "Calls that wait now.")
	descLongestWait = queueDesc("longest_wait_seconds",
		"How long the call that entered first of those that wait now has waited; 0: none waits.")
)

// Describe implements prometheus.Collector.
func (m *queueMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descOffered, descAnswered, descAbandoned, descAbandonedShort,
		descAnsweredWithin, descWait, descAbandonWait,
		descWaiting, descLongestWait} {
		descs <- d
	}
}

// Collect implements prometheus.Collector.
func (m *queueMetrics) Collect(to chan<- prometheus.Metric) {
	if m.max == 0 {
		return
	}

	now := m.now()
	for id, q := range m.byLabels(now) {
		send := func(desc *prometheus.Desc, kind prometheus.ValueType, value float64) {
			to <- prometheus.MustNewConstMetric(desc, kind, value, id.account, id.queue)
		}
		send(descOffered, prometheus.CounterValue, float64(q.Offered))
		send(descAnswered, prometheus.CounterValue, float64(q.Answered))
		send(descAbandoned, prometheus.CounterValue, float64(q.Abandoned))
		send(descAbandonedShort, prometheus.CounterValue, float64(q.AbandonedShort))
		send(descAnsweredWithin, prometheus.CounterValue, float64(q.AnsweredWithin))
		send(descWait, prometheus.CounterValue, float64(q.WaitMS)/1000)
		send(descAbandonWait, prometheus.CounterValue, float64(q.AbandonWaitMS)/1000)
		send(descWaiting, prometheus.GaugeValue, float64(q.waiting))

		var longest float64
		if q.waiting > 0 {
			longest = max(0, now.Sub(time.UnixMilli(q.enteredMS)).Seconds())
		}
		send(descLongestWait, prometheus.GaugeValue, longest)
	}
}
