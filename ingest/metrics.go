package ingest

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/fault"
)

// Result labels of bodies that Kafka has; every other value is a fault kind.
const (
	accepted = "accepted"
	replayed = "replayed" // stored by an earlier request
)

type metrics struct {
	bodies  *prometheus.CounterVec // by result
	records *prometheus.CounterVec // by topic
	bytes   *prometheus.CounterVec // by topic
	wait    prometheus.Histogram
	produce prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer, topics []string, admission func() (held int64, waiting int)) (*metrics, error) {
	m := &metrics{
		bodies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_ingest_bodies_total",
			Help: "Bodies posted, by result: accepted, replayed (stored before under the same Idempotency-Key), or the kind of error.",
		}, []string{"result"}),
		records: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_ingest_records_total",
			Help: "Records accepted, by raw topic.",
		}, []string{"topic"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_ingest_record_bytes_total",
			Help: "Bytes of the records accepted, by raw topic.",
		}, []string{"topic"}),
		wait: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                            "trunkline_ingest_wait_seconds",
			Help:                            "Time that bodies waited before they were read.",
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}),
		produce: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:                            "trunkline_ingest_produce_seconds",
			Help:                            "Time from producing a body's records to Kafka's acknowledgement of all of them, or to the failure.",
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}),
	}
	for _, result := range []string{
		accepted, replayed, string(fault.KindConflict), string(fault.KindInvalid), string(fault.KindForbidden), string(fault.KindNotFound),
		string(fault.KindTooLarge), string(fault.KindUnsupported), string(fault.KindLimited),
		string(fault.KindUnavailable), string(fault.KindInternal),
	} {
		m.bodies.WithLabelValues(result)
	}
	for _, topic := range topics {
		m.records.WithLabelValues(topic)
		m.bytes.WithLabelValues(topic)
	}
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trunkline_ingest_in_flight_bytes",
		Help: "Memory held by the bodies being processed.",
	}, func() float64 {
		held, _ := admission()
		return float64(held)
	})
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trunkline_ingest_waiting_bodies",
		Help: "Bodies waiting to be read.",
	}, func() float64 {
		_, waiting := admission()
		return float64(waiting)
	})
	for _, c := range []prometheus.Collector{m.bodies, m.records, m.bytes, m.wait, m.produce, held, waiting} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}
