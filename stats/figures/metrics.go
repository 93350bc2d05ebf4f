package figures

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

type metrics struct {
	stored  prometheus.Counter
	invalid prometheus.Counter
	retries prometheus.Counter
	delay   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "trunkline_figures_" + name, Help: help})
	}
	m := &metrics{
		stored:  counter("rows_total", "Rows of cc.stats written to the database."),
		invalid: counter("invalid_records_total", "Records of cc.stats that could not be read."),
		retries: counter("retries_total", "Attempts repeated because Kafka or the database was unavailable."),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "trunkline_figures_delay_seconds", Help: "Time from the Kafka timestamp of a batch's first record until its rows are stored.",
			NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160, NativeHistogramMinResetDuration: time.Hour,
		}),
	}
	if reg != nil {
		reg.MustRegister(m.stored, m.invalid, m.retries, m.delay)
	}
	return m
}
