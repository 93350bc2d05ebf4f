package figures

import (
	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/metric"
)

type metrics struct {
	stored  prometheus.Counter
	invalid prometheus.Counter
	retries prometheus.Counter
	delay   prometheus.Histogram
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := metric.With(reg)
	return &metrics{
		stored:  f.Counter("trunkline_figures_rows_total", "Rows of cc.stats written to the database."),
		invalid: f.Counter("trunkline_figures_invalid_records_total", "Records of cc.stats that could not be read."),
		retries: f.Counter("trunkline_figures_retries_total",
			"Attempts repeated because Kafka or the database was unavailable."),
		delay: f.NewHistogram(
			metric.NativeHistogram("trunkline_figures_delay_seconds",
				"Time from the Kafka timestamp of a batch's first record until its rows are stored.", 160)),
	}
}
