package kafka

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// metrics of this package. The topics are Trunkline's; a topic has at most 1,024
// partitions. The comment of a vector is its labels.
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

	gaps            *prometheus.CounterVec // topic, kind
	missingTopics   prometheus.Gauge
	recreatedTopics *prometheus.CounterVec // topic

	errors       *prometheus.CounterVec // op, reason
	commits      *prometheus.CounterVec // group
	rebalances   *prometheus.CounterVec // group
	workRestarts *prometheus.CounterVec // group
	lag          *prometheus.GaugeVec   // topic, partition, group
}

var operations = []string{"produce", "fetch", "group", "commit"}

func newMetrics(reg prometheus.Registerer, topics []string) *metrics {
	f := metric.With(reg)
	m := &metrics{
		produced: f.CounterVec("trunkline_kafka_produced_records_total", "Records that Kafka has acknowledged.",
			"topic"),
		producedBytes: f.CounterVec("trunkline_kafka_produced_bytes_total",
			"Bytes of record batches that Kafka has acknowledged.", "topic"),
		batchRecords: f.NewHistogram(
			metric.NativeHistogram("trunkline_kafka_produce_batch_records", "Records in one produced batch.", 100)),
		batchBytes: f.NewHistogram(
			metric.NativeHistogram("trunkline_kafka_produce_batch_bytes", "Bytes of one produced batch.", 100)),
		produceTime: f.NewHistogram(
			metric.NativeHistogram("trunkline_kafka_produce_seconds", "From the first record of a batch to its acknowledgement.",
				100)),
		inFlight: f.Gauge("trunkline_kafka_produce_in_flight_bytes",
			"Bytes of records that wait for their acknowledgement."),
		retries:       f.Counter("trunkline_kafka_produce_retries_total", "Batches sent again."),
		consumed:      f.CounterVec("trunkline_kafka_consumed_records_total", "Records read.", "topic"),
		consumedBytes: f.CounterVec("trunkline_kafka_consumed_bytes_total", "Bytes of record batches read.", "topic"),
		gaps: f.CounterVec("trunkline_kafka_gaps_total",
			"Times a log did not continue at the reader's offset: expired (deleted by retention), truncated (the log was cut), recreated (the topic was created again), damaged (a batch failed its checks twice), missing (offsets missing between two batches).",
			"topic", "kind"),
		missingTopics: f.Gauge("trunkline_kafka_topics_missing",
			"Topics that Trunkline needs and that Kafka does not have."),
		recreatedTopics: f.CounterVec("trunkline_kafka_topics_recreated_total",
			"Topics that were missing while the process ran, and that it has created again.", "topic"),
		errors: f.CounterVec("trunkline_kafka_errors_total",
			"Failed requests, by what was asked and why it failed.", "op", "reason"),
		commits: f.CounterVec("trunkline_kafka_commits_total", "Offset commits.", "group"),
		rebalances: f.CounterVec("trunkline_kafka_generations_total",
			"Generations of a consumer group this process took part in.", "group"),
		workRestarts: f.CounterVec("trunkline_kafka_partition_restarts_total",
			"Partitions whose work failed and was started again.", "group"),
		lag: f.GaugeVec("trunkline_kafka_lag_records",
			"Offsets between what a group has committed and the end of the log.", "topic", "partition", "group"),
	}

	// All series exist from the start, so that the first increase of each is visible.
	for _, op := range operations {
		for _, reason := range reasonLabels {
			m.errors.WithLabelValues(op, reason)
		}
	}

	for _, topic := range topics {
		m.produced.WithLabelValues(topic)
		m.producedBytes.WithLabelValues(topic)
		m.recreatedTopics.WithLabelValues(topic)
		m.newReadMeter(topic)

		for _, kind := range gapKinds {
			m.gaps.WithLabelValues(topic, string(kind))
		}
	}

	return m
}

func (m *metrics) countError(op, reason string) { m.errors.WithLabelValues(op, reason).Inc() }

// initGroup creates the counters of a group, so that its first failure is visible as an
// increase.
func (m *metrics) initGroup(group string) {
	m.commits.WithLabelValues(group)
	m.rebalances.WithLabelValues(group)
	m.workRestarts.WithLabelValues(group)
}

// readMeter counts the records and bytes of one reader.
type readMeter struct{ records, bytes prometheus.Counter }

func (m *metrics) newReadMeter(topic string) readMeter {
	return readMeter{m.consumed.WithLabelValues(topic), m.consumedBytes.WithLabelValues(topic)}
}

func (m readMeter) add(records, bytes int) {
	m.records.Add(float64(records))
	m.bytes.Add(float64(bytes))
}
