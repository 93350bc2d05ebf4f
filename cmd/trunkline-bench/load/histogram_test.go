package load

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAreWithinOnePercent(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var h Histogram
	var all []time.Duration

	for range 100_000 {
		d := time.Duration(1) << random.IntN(38)
		d += time.Duration(random.Int64N(int64(d)))
		all = append(all, d)
		h.Record(d)
	}

	slices.Sort(all)
	for _, q := range []float64{0, .01, .5, .9, .99, .999, 1} {
		exact := all[min(int(q*float64(len(all))), len(all)-1)]
		if got := h.Quantile(q); got < exact || float64(got) > float64(exact)*1.01+2048 {
			t.Errorf("quantile %v is %v, want %v", q, got, exact)
		}
	}

	if h.Max() != all[len(all)-1] || h.Quantile(1) != h.Max() || h.Count() != uint64(len(all)) {
		t.Errorf("max %v, quantile 1 %v, count %d", h.Max(), h.Quantile(1), h.Count())
	}
}

func TestHistogramTakesAnyLatency(t *testing.T) {
	var h Histogram
	for _, d := range []time.Duration{-1, 0, 1<<63 - 1} {
		h.Record(d)
	}
	if h.Count() != 3 || h.Quantile(.5) >= time.Millisecond || h.Max() != 1<<63-1 {
		t.Errorf("count %d, median %v, max %v", h.Count(), h.Quantile(.5), h.Max())
	}
}

func TestEveryBucketHoldsItsUpperEdge(t *testing.T) {
	for bucket := range buckets {
		if got := bucketOf(upperEdge(bucket)); got != bucket {
			t.Fatalf("the upper edge of bucket %d, %v, is in bucket %d", bucket, upperEdge(bucket), got)
		}
		if bucket < buckets-1 && bucketOf(upperEdge(bucket)+1) != bucket+1 {
			t.Fatalf("bucket %d does not end at its upper edge", bucket)
		}
	}
}

func TestHistogramsAddAndSubtract(t *testing.T) {
	var h Histogram
	h.Record(time.Second)
	before := h
	h.Record(2 * time.Millisecond)
	h.Record(4 * time.Millisecond)
	d := h.Since(&before)
	if d.Count() != 2 || d.Max() < 4*time.Millisecond || d.Max() > 5*time.Millisecond ||
		d.Quantile(0) > 3*time.Millisecond {
		t.Errorf("since: count %d, max %v, least %v", d.Count(), d.Max(), d.Quantile(0))
	}

	d.Add(&before)
	if d.Count() != 3 || d.Max() != time.Second {
		t.Errorf("sum: count %d, max %v", d.Count(), d.Max())
	}
	if (&Histogram{}).Quantile(.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}
