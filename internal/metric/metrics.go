// Package metric creates the metrics of a package and registers them in one step. Only
// files named metrics.go use it, so that each package's metrics are in one place.
package metric

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Factory creates metrics and registers them; those of a Factory without a registry
// are not exported. Its methods panic if the registry already has the metric, which is
// a programming error: see Share.
type Factory struct{ promauto.Factory }

// With returns a Factory that registers in reg, which may be nil.
func With(reg prometheus.Registerer) Factory { return Factory{promauto.With(reg)} }

// Counter creates a counter.
func (f Factory) Counter(name, help string) prometheus.Counter {
	return f.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

// CounterVec creates counters with labels.
func (f Factory) CounterVec(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

// Gauge creates a gauge.
func (f Factory) Gauge(name, help string) prometheus.Gauge {
	return f.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

// GaugeFunc creates a gauge whose value is computed at each scrape.
func (f Factory) GaugeFunc(name, help string, value func() float64) {
	f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// GaugeVec creates gauges with labels.
func (f Factory) GaugeVec(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// Histogram creates a histogram; buckets are the upper bounds of its buckets.
func (f Factory) Histogram(name, help string, buckets ...float64) prometheus.Histogram {
	return f.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
}

// NativeHistogram returns the options of a native histogram with at most the given number of
// buckets, which is reset after an hour if it has more.
func NativeHistogram(name, help string, buckets uint32) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: buckets,
		NativeHistogramMinResetDuration: time.Hour,
	}
}

// Init creates the counters for values of a label, so that the first increase of each
// is visible.
func Init[V ~string](counters *prometheus.CounterVec, values ...V) {
	for _, value := range values {
		counters.WithLabelValues(string(value))
	}
}

// Share registers c and returns it, or the registered metric with the same name: for
// metrics that a process creates several times. c must not be registered yet, as one of
// With(nil).
func Share[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}

	err := reg.Register(c)
	if registered, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		return registered.ExistingCollector.(C)
	}
	if err != nil {
		panic(err) // a programming error, as in a Factory
	}

	return c
}
