package cdrindex

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/consume"
	"trunkline/internal/kafka"
	"trunkline/internal/lag"
	"trunkline/internal/metric"
)

type metrics struct {
	records  *prometheus.CounterVec // result
	batches  prometheus.Counter
	batch    prometheus.Histogram
	delay    prometheus.Histogram
	errors   *prometheus.CounterVec // kind
	lost     prometheus.Counter
	restarts *prometheus.CounterVec   // kind
	queries  *prometheus.HistogramVec // kind
	lag      *lag.Collector
}

// Results of a record.
const (
	resultRow     = "row"     // it is now its call's row
	resultOlder   = "older"   // a repeat, or older than its call's row
	resultExpired = "expired" // its call is older than the retention
	resultInvalid = "invalid" // it is not a valid row
)

// Kinds of errors.
const (
	failedRead      = "read"
	failedWrite     = "write"
	failedFence     = "fenced" // another indexer had the partition
	failedRetention = "retention"
	failedQuery     = "query"
)

// Kinds of queries.
const (
	kindFind   = "find"
	kindList   = "list"
	kindExport = "export" // one batch of a CSV
)

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		records: f.CounterVec("trunkline_cdrindex_records_total",
			"Records of the cdr topic processed, by result. Alert on invalid ones.", "result"),
		batches: f.Counter("trunkline_cdrindex_batches_total", "Batches of records committed to the database."),
		batch: f.NewHistogram(
			metric.NativeHistogram("trunkline_cdrindex_batch_seconds", "Writing one batch to the database.", 160)),
		delay: f.NewHistogram(
			metric.NativeHistogram("trunkline_cdrindex_delay_seconds",
				"Time from the Kafka timestamp of a batch's first record until its row is stored.", 160)),
		errors: f.CounterVec("trunkline_cdrindex_errors_total",
			"Errors, by kind. They were retried or returned to the caller.", "kind"),
		lost: f.Counter("trunkline_cdrindex_lost_records_total",
			"Records that were deleted or damaged before they were indexed."),
		restarts: f.CounterVec("trunkline_cdrindex_log_restarts_total",
			"Partitions of the cdr topic found truncated or created again.", "kind"),
		queries: f.NewHistogramVec(metric.NativeHistogram("trunkline_cdrindex_query_seconds", "Queries, by kind.", 160),
			[]string{"kind"}),
		lag: lag.New("trunkline_cdrindex_lag_seconds",
			"Age of the oldest record that was read and is not stored yet, 0 when there is none."),
	}
	metric.Init(m.records, resultRow, resultOlder, resultExpired, resultInvalid)
	metric.Init(m.errors, failedRead, failedWrite, failedFence, failedRetention, failedQuery)

	for _, kind := range []string{kindFind, kindList, kindExport} {
		m.queries.WithLabelValues(kind)
	}

	metric.Init(m.restarts, kafka.GapTruncated, kafka.GapRecreated)
	if reg != nil {
		reg.MustRegister(m.lag)
	}

	return m
}

// countBatch counts the changes of a committed transaction.
func (m *metrics) countBatch(result batchCounts, took time.Duration) {
	m.records.WithLabelValues(resultRow).Add(float64(result.rows))
	m.records.WithLabelValues(resultOlder).Add(float64(result.older))
	m.records.WithLabelValues(resultExpired).Add(float64(result.expired))
	m.batches.Inc()
	m.batch.Observe(took.Seconds())
}

// countRetry counts a pause because a backend was unavailable.
func (m *metrics) countRetry(action string) {
	kind := failedWrite
	if action == consume.ActionRead {
		kind = failedRead
	}
	m.errors.WithLabelValues(kind).Inc()
}

// observeQuery records the duration of a query, and its error. It is deferred.
func (m *metrics) observeQuery(kind string, startedAt time.Time, err *error) {
	m.queries.WithLabelValues(kind).Observe(time.Since(startedAt).Seconds())
	if *err != nil {
		m.errors.WithLabelValues(failedQuery).Inc()
	}
}
