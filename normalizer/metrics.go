package normalizer

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/format"
	"trunkline/format/registry"
	"trunkline/internal/kafka"
)

// metrics of the package. The values of all labels are bounded.
type metrics struct {
	records  *prometheus.CounterVec // format
	dead     *prometheus.CounterVec // topic, kind
	batch    prometheus.Histogram
	delay    prometheus.Histogram
	retries  prometheus.Counter
	lost     *prometheus.CounterVec // topic
	restarts *prometheus.CounterVec // topic, kind
}

func newMetrics(reg prometheus.Registerer) *metrics {
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_normalizer_" + name, Help: help,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		})
	}
	m := &metrics{
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_normalizer_records_total",
			Help: "Records normalized and durable, by source format and result.",
		}, []string{"format", "result"}),
		dead: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_dead_letters_total",
			Help: "Records that could not be normalized, by raw topic and kind.",
		}, []string{"topic", "kind"}),
		batch: histogram("batch_records", "Raw records in one batch."),
		delay: histogram("delay_seconds", "Time from the Kafka timestamp of a batch's first record until the batch is durable."),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_normalizer_retries_total",
			Help: "Waits of a partition because Kafka or the account store was unavailable.",
		}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_normalizer_lost_records_total",
			Help: "Raw records that were deleted or damaged before they were normalized.",
		}, []string{"topic"}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_normalizer_log_restarts_total",
			Help: "Raw partitions found truncated or created again, by raw topic. Acknowledged records may be lost.",
		}, []string{"topic", "kind"}),
	}
	for _, f := range registry.Formats() {
		m.initFormat(f.Name)
	}
	m.initFormat(formatUnknown)
	for topic := range routes {
		m.lost.WithLabelValues(topic)
		m.restarts.WithLabelValues(topic, string(kafka.GapTruncated))
		m.restarts.WithLabelValues(topic, string(kafka.GapRecreated))
		for _, kind := range kinds {
			m.dead.WithLabelValues(topic, string(kind))
		}
	}
	if reg != nil {
		reg.MustRegister(m.records, m.dead, m.batch, m.delay, m.retries, m.lost, m.restarts)
	}
	return m
}

const (
	resultNormalized = "normalized"
	resultDead       = "dead_letter"
)

// initFormat creates the counters of one format.
func (m *metrics) initFormat(format string) {
	m.records.WithLabelValues(format, resultNormalized)
	m.records.WithLabelValues(format, resultDead)
}

// counts has the counts of one batch until it is durable.
type counts struct {
	formats map[string]*outcome
	kinds   map[format.Kind]int
}

type outcome struct{ normalized, dead int }

func newCounts() counts {
	return counts{make(map[string]*outcome, len(registry.Formats())+1), make(map[format.Kind]int, len(kinds))}
}

func (t *counts) format(name string) *outcome {
	n := t.formats[name]
	if n == nil {
		n = new(outcome)
		t.formats[name] = n
	}
	return n
}

func (t *counts) reset() {
	for _, n := range t.formats {
		*n = outcome{}
	}
	clear(t.kinds)
}

func (m *metrics) add(topic string, t *counts) {
	for format, n := range t.formats {
		if n.normalized > 0 {
			m.records.WithLabelValues(format, resultNormalized).Add(float64(n.normalized))
		}
		if n.dead > 0 {
			m.records.WithLabelValues(format, resultDead).Add(float64(n.dead))
		}
	}
	for kind, n := range t.kinds {
		m.dead.WithLabelValues(topic, string(kind)).Add(float64(n))
	}
}
