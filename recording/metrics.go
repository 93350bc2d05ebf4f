package recording

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	refused prometheus.Counter
	damaged prometheus.Counter
	uploads *prometheus.CounterVec
	bytes   *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_recording_refused_total",
			Help: "Recordings refused because they should have been sealed and could not be. Alert on any.",
		}),
		damaged: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trunkline_recording_damaged_total",
			Help: "Times a stored recording was found altered, cut short or missing. Alert on any.",
		}),
		uploads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_recording_stored_total",
			Help: "Recordings stored, by how they are kept.",
		}, []string{"kept"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trunkline_recording_stored_bytes_total",
			Help: "Bytes of audio stored, by how they are kept.",
		}, []string{"kept"}),
	}
	for _, kept := range []string{keptSealed, keptPlain} {
		m.uploads.WithLabelValues(kept)
		m.bytes.WithLabelValues(kept)
	}
	reg.MustRegister(m.refused, m.damaged, m.uploads, m.bytes)
	return m
}

// How a recording is kept.
const (
	keptSealed = "sealed"
	keptPlain  = "plain"
)

func (m *metrics) stored(sealed bool, size int64) {
	kept := keptPlain
	if sealed {
		kept = keptSealed
	}
	m.uploads.WithLabelValues(kept).Inc()
	m.bytes.WithLabelValues(kept).Add(float64(size))
}
