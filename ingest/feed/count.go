package feed

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// count is a counter that is part of the metrics and of the status.
type count struct {
	metric prometheus.Counter
	n      atomic.Uint64
}

func (c *count) add(n uint64) {
	c.metric.Add(float64(n))
	c.n.Add(n)
}

func (c *count) value() uint64 { return c.n.Load() }
