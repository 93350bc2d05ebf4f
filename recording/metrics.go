package recording

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// metrics of this package. The comment of a vector is its label.
type metrics struct {
	refused     prometheus.Counter
	damaged     prometheus.Counter
	stored      *prometheus.CounterVec // kept
	storedBytes *prometheus.CounterVec // kept
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		refused: f.Counter("trunkline_recording_refused_total",
			"Recordings refused because they should have been sealed and could not be. Alert on any."),
		damaged: f.Counter("trunkline_recording_damaged_total",
			"Times a stored recording was found altered, cut short or missing. Alert on any."),
		stored: f.CounterVec("trunkline_recording_stored_total", "Recordings stored, by how they are kept.", "kept"),
		storedBytes: f.CounterVec("trunkline_recording_stored_bytes_total", "Bytes of audio stored, by how they are kept.",
			"kept"),
	}
	metric.Init(m.stored, keptSealed, keptPlain)
	metric.Init(m.storedBytes, keptSealed, keptPlain)

	return m
}

// Forms in which a recording is stored, as metric labels.
const (
	keptSealed = "sealed"
	keptPlain  = "plain"
)

func (m *metrics) countStored(sealed bool, size int64) {
	kept := keptPlain
	if sealed {
		kept = keptSealed
	}
	m.stored.WithLabelValues(kept).Inc()
	m.storedBytes.WithLabelValues(kept).Add(float64(size))
}
