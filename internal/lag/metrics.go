// Package lag provides the metric of a consumer's lag: for each of its partitions, the
// age of the oldest record that was read but not stored yet.
package lag

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Collector computes the lags at each scrape, in seconds, 0 if no record is pending.
// It is safe for concurrent use.
type Collector struct {
	desc              *prometheus.Desc
	oldestByPartition sync.Map // partition → *atomic.Int64
}

// New returns a collector with the label partition.
func New(name, help string) *Collector {
	return &Collector{desc: prometheus.NewDesc(name, help, []string{"partition"}, nil)}
}

// Track adds a partition, until done is called. The caller keeps oldest up to date:
// the time of the oldest pending record in Unix milliseconds, 0: none.
func (c *Collector) Track(partition int) (oldest *atomic.Int64, done func()) {
	oldest = new(atomic.Int64)
	c.oldestByPartition.Store(partition, oldest)
	return oldest, func() { c.oldestByPartition.CompareAndDelete(partition, oldest) }
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descs chan<- *prometheus.Desc) { descs <- c.desc }

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	c.oldestByPartition.Range(func(partition, oldest any) bool {
		var lag float64
		oldestMillis := oldest.(*atomic.Int64).Load()
		if oldestMillis != 0 {
			lag = max(0, time.Since(time.UnixMilli(oldestMillis)).Seconds())
		}
		metrics <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, lag, strconv.Itoa(partition.(int)))
		return true
	})
}
