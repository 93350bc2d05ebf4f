package load

import (
	"testing"
	"time"
)

const checkerRun = "CHECKRUN"

// checkedRecord returns the value of a record on the topic.
func checkedRecord(clock Clock, stream int, seq uint64) []byte {
	at := clock.Now().Add(-time.Second).UnixNano()
	return GenericEvent(nil, Stamp{Stream: stream, Seq: seq, At: at}, checkerRun, "a", nil)
}

func TestTopicCheckerFindsFaults(t *testing.T) {
	type record struct {
		partition int
		source    int64
		stream    int
		seq       uint64
	}

	for name, c := range map[string]struct {
		records   []record
		published []uint64
		want      PartitionTally
		in        int // partition of the record
	}{
		"nothing": {[]record{{0, 1, 0, 1}, {1, 1, 1, 1}, {0, 2, 0, 2}}, []uint64{2, 1},
			PartitionTally{Records: 3}, -2},
		"one withheld": {[]record{{0, 1, 0, 1}, {0, 3, 0, 3}}, []uint64{3, 0},
			PartitionTally{Records: 2, Missing: 1}, 0},
		"the last withheld": {[]record{{3, 1, 0, 1}}, []uint64{3, 0}, PartitionTally{Records: 1, Missing: 2}, 3},
		"a whole stream":    {[]record{{0, 1, 0, 1}}, []uint64{1, 5}, PartitionTally{Records: 1, Missing: 5}, -1},
		"the same source again": {[]record{{0, 7, 0, 1}, {0, 7, 0, 1}}, []uint64{1, 0},
			PartitionTally{Records: 1, Repeated: 1}, 0},
		"another source again": {[]record{{0, 7, 0, 1}, {0, 8, 0, 1}}, []uint64{1, 0},
			PartitionTally{Records: 1, Duplicated: 1}, 0},
		"no source, again": {[]record{{0, -1, 0, 1}, {0, -1, 0, 1}}, []uint64{1, 0},
			PartitionTally{Records: 1, Duplicated: 1}, 0},
		"one late": {[]record{{0, 1, 0, 2}, {0, 2, 0, 1}}, []uint64{2, 0},
			PartitionTally{Records: 2, Disordered: 1}, 0},
		"another partition": {[]record{{0, 1, 0, 1}, {5, 2, 0, 2}}, []uint64{2, 0},
			PartitionTally{Records: 2, Strayed: 1}, 5},
	} {
		clock := NewClock()
		checker := NewTopicChecker(checkerRun, 2, clock)
		for _, r := range c.records {
			checker.Record(r.partition, r.source, checkedRecord(clock, r.stream, r.seq))
		}

		got := checker.FinalTally(c.published)
		if got.PartitionTally != c.want {
			t.Errorf("%s: %+v, want %+v", name, got.PartitionTally, c.want)
		}

		told := got.Partitions[c.in]
		told.Records = 0
		c.want.Records = 0

		if c.in != -2 && told != c.want {
			t.Errorf("%s: partition %d has %+v", name, c.in, told)
		}
		if got.Latency.Count() != got.Records || got.Latency.Quantile(.5) < time.Second {
			t.Errorf("%s: %d latencies, p50 %s", name, got.Latency.Count(), got.Latency.Quantile(.5))
		}
	}
}

func TestTopicCheckerIgnoresProbesAndOtherRuns(t *testing.T) {
	clock := NewClock()
	checker := NewTopicChecker(checkerRun, 2, clock)
	checker.Record(0, 1, checkedRecord(clock, 1, 0))
	checker.Record(0, 2, GenericEvent(nil, Stamp{Seq: 1}, "OTHERRUN", "a", nil))
	checker.Record(0, 3, checkedRecord(clock, 2, 1)) // an unknown stream
	checker.Record(0, 4, []byte(`{"id":"x"}`))

	if got := checker.Tally(); got.Proven != 1 || got.PartitionTally != (PartitionTally{}) ||
		checker.Outstanding([]uint64{0, 2}) != 2 {
		t.Errorf("%+v", got)
	}
}
