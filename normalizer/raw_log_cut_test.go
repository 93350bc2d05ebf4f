package normalizer

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/kafka/kafkatest"
)

// The raw log loses its end or is created again. Records that were normalized
// keep their ids and are not normalized again; what is written in their place
// is new.
func TestARawLogThatWasCut(t *testing.T) {
	for name, c := range map[string]struct {
		cut     func(k *kafkatest.Log)
		kind    kafka.GapKind
		more    int // records written after it
		running bool
		first   string // position of the first of them
	}{
		"truncated, shorter than before": {func(k *kafkatest.Log) { k.Truncate(event.TopicRaw, 0, 100) },
			kafka.GapTruncated, 10, false, "0:100@1"},
		"truncated, and grown past it": {func(k *kafkatest.Log) { k.Truncate(event.TopicRaw, 0, 100) },
			kafka.GapTruncated, 150, false, "0:100@1"},
		"truncated to nothing": {func(k *kafkatest.Log) { k.Truncate(event.TopicRaw, 0, 0) }, kafka.GapTruncated,
			10, false, "0:0@1"},
		"truncated while it is read": {func(k *kafkatest.Log) { k.Truncate(event.TopicRaw, 0, 100) },
			kafka.GapTruncated, 10, true, "0:100@1"},
		"truncated, grown, while read": {func(k *kafkatest.Log) { k.Truncate(event.TopicRaw, 0, 100) },
			kafka.GapTruncated, 150, true, "0:100@1"},
		"created again": {func(k *kafkatest.Log) { k.Recreate(event.TopicRaw) }, kafka.GapRecreated, 10,
			false, "0:0@1"},
		"created again, grown past it": {func(k *kafkatest.Log) { k.Recreate(event.TopicRaw) }, kafka.GapRecreated, 250,
			false, "0:0@1"},
		"created again while it is read": {func(k *kafkatest.Log) { k.Recreate(event.TopicRaw) }, kafka.GapRecreated,
			10,
			true, "0:0@1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newFakeKafka(1)
				for range 5 { // the leader's epoch
					k.Truncate(event.TopicRaw, 0, 0)
				}

				n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
				stop := start(n)
				for i := range 200 {
					k.Append(numberedRecord(i))
				}

				time.Sleep(time.Minute)
				if !c.running {
					stop()
				}

				c.cut(k)
				for i := range c.more {
					k.Append(numberedRecord(1000 + i))
				}

				if !c.running {
					stop = start(n)
				}

				time.Sleep(time.Minute)
				stop()
				numbers, positions := delivered(t, k)
				if len(numbers) != 200+c.more || len(count(numbers)) != 200+c.more ||
					len(k.All(event.TopicEvents, 0)) != 200+c.more {
					t.Fatalf("%d events in cc.evt, %d delivered, %d different, want %d",
						len(k.All(event.TopicEvents, 0)), len(numbers), len(count(numbers)), 200+c.more)
				}

				if positions[199] != "0:199" || positions[200] != c.first {
					t.Errorf("positions go on from %s to %s", positions[199], positions[200])
				}
				if got := testutil.ToFloat64(
					n.metrics.restarts.WithLabelValues(event.TopicRaw, string(c.kind))); got != 1 {
					t.Errorf("%v counted", got)
				}

				// The next takeover finds nothing to do.
				runUntilIdle(n)
				if got := len(k.All(event.TopicEvents, 0)); got != 200+c.more {
					t.Errorf("%d events after another takeover", got)
				}
			})
		})
	}
}

// Normalizers that overlap and fail, lost commits, and a raw log that loses its
// end again and again: everything that is in the raw log at the end was
// delivered once, and ids always rise. While the log is cut, one normalizer
// runs: a second one that holds records of the log before may still write them
// (see doc.go).
func TestARawLogThatIsCutAgainAndAgain(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				k := unreliableKafka(1, seed)
				run := func() func() { return start(newTestNormalizer(t, k, acmeOnly, event.TopicRaw)) }
				first, second := run(), func() {}
				n := 0

				for range 30 {
					cut := false
					for range 1 + random.IntN(60) {
						r := numberedRecord(n)
						if random.IntN(5) == 0 {
							r = rawEvent(0, today(), "nobody")
						}
						k.Append(r)
						n++
					}

					time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
					second()
					second = func() {}

					if random.IntN(3) == 0 {
						size := int64(len(k.All(event.TopicRaw, 0)))
						k.Truncate(event.TopicRaw, 0, size-random.Int64N(min(size, 40)+1))
						time.Sleep(10 * time.Millisecond) // an election takes longer
						cut = true
					}

					if random.IntN(2) == 0 {
						first()
						first = run()
					}

					time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
					if !cut {
						second = run()
					}
				}

				stopFailing(k)
				k.Append(numberedRecord(n)) // a position of the last generation
				time.Sleep(time.Hour)
				first()
				second()
				numbers, _ := delivered(t, k)
				times := count(numbers)

				for _, r := range k.All(event.TopicRaw, 0) {
					if string(r.Key) == "nobody" {
						continue
					}

					i := indexAfter(t, r.Value, `"n":`)
					number, err := strconv.Atoi(string(r.Value[i : len(r.Value)-1]))
					if err != nil {
						t.Fatal(err)
					}

					if times[number] != 1 {
						t.Errorf("record %d was delivered %d times", number, times[number])
					}
				}
			})
		})
	}
}
