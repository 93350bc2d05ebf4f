package ingest

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
	"trunkline/internal/metric"
)

// Result labels of stored bodies. The label of a refused body is a fault kind.
const (
	labelAccepted = "accepted"
	labelReplayed = "replayed" // stored by an earlier request
)

type metrics struct {
	bodies   *prometheus.CounterVec // by result
	records  *prometheus.CounterVec // by topic
	bytes    *prometheus.CounterVec // by topic
	repaired prometheus.Counter     // bodies
	wait     prometheus.Histogram   // seconds before admission
	produce  prometheus.Histogram   // seconds until Kafka has all of a body
}

func newMetrics(reg prometheus.Registerer, topics []string, admission func() (held int64, waiting int)) *metrics {
	f := metric.With(reg)
	m := &metrics{
		bodies: f.CounterVec("trunkline_ingest_bodies_total",
			"Bodies posted, by result: accepted, replayed (stored before under the same Idempotency-Key), or the kind of error.",
			"result"),
		records: f.CounterVec("trunkline_ingest_records_total", "Records accepted, by raw topic.", "topic"),
		bytes: f.CounterVec("trunkline_ingest_record_bytes_total", "Bytes of the records accepted, by raw topic.",
			"topic"),
		repaired: f.Counter("trunkline_ingest_repaired_bodies_total",
			"Bodies of platforms in which bytes that are not UTF-8 were replaced by U+FFFD."),
		wait: f.NewHistogram(
			metric.NativeHistogram("trunkline_ingest_wait_seconds", "Time that bodies waited before they were read.", 100)),
		produce: f.NewHistogram(
			metric.NativeHistogram("trunkline_ingest_produce_seconds",
				"Time from producing a body's records to Kafka's acknowledgement of all of them, or to the failure.",
				100)),
	}
	metric.Init(m.bodies, labelAccepted, labelReplayed)
	metric.Init(m.bodies, fault.KindConflict, fault.KindInvalid, fault.KindForbidden, fault.KindNotFound,
		fault.KindTooLarge,
		fault.KindUnsupported, fault.KindLimited, fault.KindUnavailable, fault.KindInternal)
	metric.Init(m.records, topics...)
	metric.Init(m.bytes, topics...)

	f.GaugeFunc("trunkline_ingest_in_flight_bytes", "Memory held by the bodies being processed.", func() float64 {
		held, _ := admission()
		return float64(held)
	})

	f.GaugeFunc("trunkline_ingest_waiting_bodies", "Bodies waiting to be read.", func() float64 {
		_, waiting := admission()
		return float64(waiting)
	})

	return m
}
