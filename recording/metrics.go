package recording

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// metrics of this package. The comment of a vector is its label.
type metrics struct {
	refused prometheus.Counter
	damaged prometheus.Counter
	uploads *prometheus.CounterVec // kept
	bytes   *prometheus.CounterVec // kept
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	m := &metrics{
		refused: f.Counter("trunkline_recording_refused_total",
			"Recordings refused because they should have been sealed and could not be. Alert on any."),
		damaged: f.Counter("trunkline_recording_damaged_total",
			"Times a stored recording was found altered, cut short or missing. Alert on any."),
		uploads: f.CounterVec("trunkline_recording_stored_total", "Recordings stored, by how they are kept.", "kept"),
		bytes: f.CounterVec("trunkline_recording_stored_bytes_total", "Bytes of audio stored, by how they are kept.",
			"kept"),
	}
	metric.Init(m.uploads, keptSealed, keptPlain)
	metric.Init(m.bytes, keptSealed, keptPlain)

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
	m.uploads.WithLabelValues(kept).Inc()
	m.bytes.WithLabelValues(kept).Add(float64(size))
}
