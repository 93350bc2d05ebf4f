package kafka

import (
	"github.com/prometheus/client_golang/prometheus"
)

// metrics of this package. Topics are ours and few; partitions at most 1,024.
type metrics struct {
	produced      *prometheus.CounterVec // topic
	producedBytes *prometheus.CounterVec // topic
	batchRecords  prometheus.Histogram
	batchBytes    prometheus.Histogram
	produceTime   prometheus.Histogram
	inFlight      prometheus.Gauge
	retries       prometheus.Counter

	consumed      *prometheus.CounterVec // topic
	consumedBytes *prometheus.CounterVec // topic

	gaps *prometheus.CounterVec // topic, kind

	errors       *prometheus.CounterVec // op, reason
	commits      *prometheus.CounterVec // group
	rebalances   *prometheus.CounterVec // group
	workRestarts *prometheus.CounterVec // group
	lag          *prometheus.GaugeVec   // topic, partition, group
}

var operations = []string{"produce", "fetch", "group", "commit"}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "trunkline_kafka_" + name, Help: help}, labels)
	}
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_kafka_" + name, Help: help,
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100,
		})
	}
	m := &metrics{
		produced:      counter("produced_records_total", "Records that Kafka has acknowledged.", "topic"),
		producedBytes: counter("produced_bytes_total", "Bytes of record batches that Kafka has acknowledged.", "topic"),
		batchRecords:  histogram("produce_batch_records", "Records in one produced batch."),
		batchBytes:    histogram("produce_batch_bytes", "Bytes of one produced batch."),
		produceTime:   histogram("produce_seconds", "From the first record of a batch to its acknowledgement."),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trunkline_kafka_produce_in_flight_bytes", Help: "Bytes of records that wait for their acknowledgement."}),
		retries: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_kafka_produce_retries_total", Help: "Batches sent again."}),
		consumed:      counter("consumed_records_total", "Records read.", "topic"),
		consumedBytes: counter("consumed_bytes_total", "Bytes of record batches read.", "topic"),
		gaps:          counter("gaps_total", "Times a reader found that a log does not go on where it was: records deleted, cut off, damaged, missing, or the topic created again.", "topic", "kind"),
		errors:        counter("errors_total", "Failed requests, by what was asked and why it failed.", "op", "reason"),
		commits:       counter("commits_total", "Offset commits.", "group"),
		rebalances:    counter("generations_total", "Generations of a consumer group this process took part in.", "group"),
		workRestarts:  counter("lane_restarts_total", "Partitions whose work failed and was started again.", "group"),
		lag: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trunkline_kafka_lag_records", Help: "Offsets between what a group has committed and the end of the log."},
			[]string{"topic", "partition", "group"}),
	}
	for _, op := range operations {
		for _, reason := range reasons {
			m.errors.WithLabelValues(op, reason)
		}
	}
	for _, spec := range Specs(0) {
		m.produced.WithLabelValues(spec.Name)
		m.producedBytes.WithLabelValues(spec.Name)
		m.reading(spec.Name)
		for _, kind := range gapKinds {
			m.gaps.WithLabelValues(spec.Name, string(kind))
		}
	}
	if reg != nil {
		reg.MustRegister(m.produced, m.producedBytes, m.batchRecords, m.batchBytes, m.produceTime, m.inFlight, m.retries,
			m.consumed, m.consumedBytes, m.gaps, m.errors, m.commits, m.rebalances, m.workRestarts, m.lag)
	}
	return m
}

func (m *metrics) failed(op, reason string) { m.errors.WithLabelValues(op, reason).Inc() }

// joins makes the counters of a group, so that its first failure is seen too.
func (m *metrics) joins(group string) {
	m.commits.WithLabelValues(group)
	m.rebalances.WithLabelValues(group)
	m.workRestarts.WithLabelValues(group)
}

// readMeter counts what one reader reads.
type readMeter struct{ records, bytes prometheus.Counter }

func (m *metrics) reading(topic string) readMeter {
	return readMeter{m.consumed.WithLabelValues(topic), m.consumedBytes.WithLabelValues(topic)}
}

func (m readMeter) add(records, bytes int) {
	m.records.Add(float64(records))
	m.bytes.Add(float64(bytes))
}
