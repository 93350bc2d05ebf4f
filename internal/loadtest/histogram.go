package loadtest

import (
	"math/bits"
	"time"
)

// Latencies are counted in units of 1,024 ns, in buckets that are exact up to
// 256 units and at most 1/128 of the value wide above, up to an hour.
const (
	unitShift = 10
	subBits   = 7
	subCount  = 1 << subBits
	buckets   = (32-subBits+1)*subCount + subCount
)

// Histogram counts latencies: Record costs a few nanoseconds and never
// allocates. The zero value is empty. It is for one goroutine at a time.
type Histogram struct {
	counts  [buckets]uint64
	total   uint64
	largest time.Duration
}

// Record counts one latency. One below zero, which only a clock that was set
// can make, is taken as zero.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucketOf(d)]++
	h.total++
	h.largest = max(h.largest, d)
}

func bucketOf(d time.Duration) int {
	units := uint64(d) >> unitShift
	shift := max(bits.Len64(units)-subBits-1, 0)
	return min(shift*subCount+int(units>>shift), buckets-1)
}

// upperEdge returns the largest latency of a bucket.
func upperEdge(bucket int) time.Duration {
	shift := max(bucket/subCount-1, 0)
	units := uint64(bucket-shift*subCount+1) << shift
	return time.Duration(units<<unitShift) - 1
}

// Count returns the number of recorded latencies.
func (h *Histogram) Count() uint64 { return h.total }

// Max returns the largest latency of all, exactly.
func (h *Histogram) Max() time.Duration { return h.largest }

// Quantile returns the latency that the share q (0 to 1) of all do not exceed;
// 0 when there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := min(uint64(q*float64(h.total)), h.total-1)
	var seen uint64
	for bucket, n := range h.counts {
		if seen += n; seen > rank {
			return min(upperEdge(bucket), h.largest)
		}
	}
	return h.largest
}

// Add counts everything that o has counted, too.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.largest = max(h.largest, o.largest)
}

// Since returns the counts added after earlier, a copy of h from before. Its
// Max is that of the whole, unless nothing was counted or what was is smaller
// by its bucket.
func (h *Histogram) Since(earlier *Histogram) *Histogram {
	d := &Histogram{total: h.total - earlier.total}
	for i := range h.counts {
		if d.counts[i] = h.counts[i] - earlier.counts[i]; d.counts[i] > 0 {
			d.largest = min(upperEdge(i), h.largest)
		}
	}
	return d
}
