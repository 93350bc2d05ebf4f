package feed

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// statusCounter is a counter that is part of the metrics and of the status.
type statusCounter struct {
	metric prometheus.Counter
	n      atomic.Uint64
}

func (c *statusCounter) add(n uint64) {
	c.metric.Add(float64(n))
	c.n.Add(n)
}

func (c *statusCounter) value() uint64 { return c.n.Load() }
