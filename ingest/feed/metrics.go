package feed

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

// metrics has the metrics of all feeds of a process.
type metrics struct {
	connected, spoolBytes, oldestUnsent              *prometheus.GaugeVec
	events, bytes, holes, resyncDifferences, dropped *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	gauge := func(name, help string) *prometheus.GaugeVec { return f.GaugeVec(name, help, "feed", "kind") }
	counter := func(name, help string) *prometheus.CounterVec { return f.CounterVec(name, help, "feed", "kind") }

	return &metrics{
		connected: gauge("trunkline_feed_connected",
			"1 while this node is connected to the feed's platform, else 0."),
		spoolBytes: gauge("trunkline_feed_spool_bytes",
			"Space on the disk of the events that Kafka does not have yet, and of the rest of their files."),
		oldestUnsent: gauge("trunkline_feed_oldest_unsent_seconds",
			"Age of the oldest event that Kafka does not have yet; 0: it has all."),
		events: counter("trunkline_feed_events_total", "Events read from the platform."),
		bytes:  counter("trunkline_feed_bytes_total", "Bytes of the events read from the platform."),
		holes: counter("trunkline_feed_holes_total",
			"Places where events are missing, by the platform's numbering or through damage in the spool."),
		resyncDifferences: counter("trunkline_feed_resync_differences_total",
			"Differences between the platform and the state that a resync has corrected."),
		dropped: counter("trunkline_feed_dropped_total",
			"Events lost: missing in the platform's numbering, too large for Kafka, or damaged in the spool."),
	}
}

// feedMetrics has the metrics of one feed.
type feedMetrics struct {
	connected, spoolBytes, oldestUnsent              prometheus.Gauge
	events, bytes, holes, resyncDifferences, dropped *statusCounter
}

// forFeed returns the metrics with the labels of a feed.
func (m *metrics) forFeed(cfg Config) feedMetrics {
	counter := func(v *prometheus.CounterVec) *statusCounter {
		return &statusCounter{metric: v.WithLabelValues(cfg.Name, cfg.Kind)}
	}

	return feedMetrics{
		connected:    m.connected.WithLabelValues(cfg.Name, cfg.Kind),
		spoolBytes:   m.spoolBytes.WithLabelValues(cfg.Name, cfg.Kind),
		oldestUnsent: m.oldestUnsent.WithLabelValues(cfg.Name, cfg.Kind),
		events:       counter(m.events), bytes: counter(m.bytes), holes: counter(m.holes),
		resyncDifferences: counter(m.resyncDifferences), dropped: counter(m.dropped),
	}
}
