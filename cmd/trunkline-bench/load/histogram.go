package load

import (
	"math/bits"
	"time"
)

// Latencies are counted in units of 1,024 ns, up to an hour. Buckets are exact up to 256 units;
// above, their width is at most 1/128 of the value.
const (
	unitShift = 10
	subBits   = 7            // a power of two has 1 << subBits buckets
	subCount  = 1 << subBits // of a power of two
	buckets   = (32-subBits+1)*subCount + subCount
)

// Histogram counts latencies: Record takes a few nanoseconds and does not allocate. The zero
// value is empty. It is not safe for concurrent use.
type Histogram struct {
	counts  [buckets]uint64
	total   uint64
	largest time.Duration
}

// Record counts one latency. A negative one, which results only from a clock change, counts as
// zero.
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

// Max returns the exact largest latency.
func (h *Histogram) Max() time.Duration { return h.largest }

// Quantile returns the latency that a fraction q (0 to 1) of all latencies do not exceed; 0 if
// there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}

	rank := min(uint64(q*float64(h.total)), h.total-1)
	var seen uint64
	for bucket, n := range h.counts {
		seen += n
		if seen > rank {
			return min(upperEdge(bucket), h.largest)
		}
	}

	return h.largest
}

// Add adds the counts of o.
func (h *Histogram) Add(o *Histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.largest = max(h.largest, o.largest)
}

// Since returns the counts added after earlier, an earlier copy of h. Its Max is that of h,
// unless nothing was counted since, or the buckets show that all newer latencies are smaller.
func (h *Histogram) Since(earlier *Histogram) *Histogram {
	d := &Histogram{total: h.total - earlier.total}
	for i := range h.counts {
		d.counts[i] = h.counts[i] - earlier.counts[i]
		if d.counts[i] > 0 {
			// The largest since is not known exactly: the edge of its bucket bounds it.
			d.largest = min(upperEdge(i), h.largest)
		}
	}
	return d
}
