package stats

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/lag"
	"trunkline/internal/metric"
)

type metrics struct {
	events   prometheus.Counter
	late     prometheus.Counter
	lost     prometheus.Counter
	invalid  prometheus.Counter
	batches  prometheus.Counter
	records  prometheus.Counter
	repairs  prometheus.Counter
	retries  prometheus.Counter
	messages prometheus.Counter
	alerts   prometheus.Counter
	entries  *prometheus.GaugeVec // kind
	load     prometheus.Histogram
	queues   *queueMetrics
	lag      *lag.Collector
}

func newMetrics(reg prometheus.Registerer, queues *queueMetrics) *metrics {
	f := metric.With(reg)
	m := &metrics{
		events: f.Counter("trunkline_stats_events_total", "Events of cc.evt folded into figures."),
		late: f.Counter("trunkline_stats_late_events_total",
			"Events left out because their interval takes no more: see stats.late_events and stats.max_rows."),
		lost: f.Counter("trunkline_stats_lost_events_total",
			"Events that were deleted from cc.evt or damaged before they were folded."),
		invalid: f.Counter("trunkline_stats_invalid_records_total", "Records of cc.evt that could not be read."),
		batches: f.Counter("trunkline_stats_batches_total", "Record batches written to cc.stats."),
		records: f.Counter("trunkline_stats_records_total", "Records written to cc.stats."),
		repairs: f.Counter("trunkline_stats_repairs_total",
			"Records written again because an overlapping processor had overwritten them."),
		messages: f.Counter("trunkline_stats_messages_total",
			"AGENT_PERFORMANCE messages produced to cc.raw; the normalizer drops those that it has."),
		alerts: f.Counter("trunkline_stats_alerts_total",
			"Events alert.started and alert.ended produced to cc.raw; the normalizer drops those that it has."),
		retries: f.Counter("trunkline_stats_retries_total", "Attempts repeated because Kafka was unavailable."),
		entries: f.GaugeVec("trunkline_stats_entries",
			"Entries kept in memory: rows of queues and agents, calls, agents, open intervals, alerts, feeds.", "kind"),
		load: f.NewHistogram(
			metric.NativeHistogram("trunkline_stats_load_seconds", "Reading a partition of cc.stats at a takeover.", 160)),
		queues: queues,
		lag: lag.New("trunkline_stats_lag_seconds",
			"Age of the oldest event that was read and whose figures are not written yet, 0 when there is none."),
	}

	for _, kind := range kinds {
		m.entries.WithLabelValues(kind)
	}

	if reg != nil {
		reg.MustRegister(m.lag, m.queues)
	}

	return m
}

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
