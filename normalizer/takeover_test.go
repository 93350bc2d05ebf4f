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

// today moves the clock of a synctest bubble, which begins in 2000, to where
// ids begin to tell the time.
func today() time.Time { return time.Now().AddDate(26, 0, 0) }

// numberedRecord returns a raw record that differs from every other.
func numberedRecord(n int) kafka.Record {
	r := rawEvent(0, today(), "acme")
	r.Value = fmt.Appendf(nil, `{"Account-ID":"acme","Type":"svc_cc_queue_on_call_event","n":%d}`, n)
	return r
}

// delivered reads cc.evt as docs/topics.md says: a record whose position does
// not come after the last one is a repeat. It fails when ids do not rise.
func delivered(t *testing.T, k *kafkatest.Log) (numbers []int, positions []string) {
	t.Helper()
	last, lastID := event.Position{Offset: -1}, event.ID(0)
	for _, r := range k.All(event.TopicEvents, 0) {
		at, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
		if err != nil {
			t.Fatal(err)
		}

		if at.Compare(last) <= 0 {
			continue
		}

		id, err := event.MessageID(r.Value)
		if err != nil || id <= lastID {
			t.Fatalf("position %v: id %v after %v, %v", at, id, lastID, err)
		}

		last, lastID = at, id
		positions = append(positions, at.String())
		var n int
		if _, err := fmt.Sscanf(string(r.Value[indexAfter(t, r.Value, `"n":`):]), "%d", &n); err != nil {
			t.Fatal(err)
		}

		numbers = append(numbers, n)
	}

	return numbers, positions
}

func indexAfter(t *testing.T, value []byte, key string) int {
	t.Helper()
	for i := range len(value) - len(key) {
		if string(value[i:i+len(key)]) == key {
			return i + len(key)
		}
	}
	t.Fatalf("%s is not in %s", key, value)
	return 0
}

func count(numbers []int) map[int]int {
	times := make(map[int]int)
	for _, n := range numbers {
		times[n]++
	}
	return times
}

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
				k, _ := unreliableKafka(1, seed)
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

// cc.evt lost its end. The group's commit is ahead of it; the raw log has what
// is missing.
func TestATakeoverGoesOnWhereTheNormalizedLogEnds(t *testing.T) {
	for name, end := range map[string]int64{"half": 300, "all": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newFakeKafka(1)
				for i := range 600 {
					k.Append(numberedRecord(i))
				}

				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				before := k.All(event.TopicEvents, 0)
				if next, _ := k.Progress(event.TopicRaw, 0).Committed(); next != 600 || len(before) != 600 {
					t.Fatalf("committed %d, %d events", next, len(before))
				}

				k.Truncate(event.TopicEvents, 0, end)
				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				after := k.All(event.TopicEvents, 0)
				if len(after) != 600 {
					t.Fatalf("%d events came back to", len(after))
				}

				for i := range after {
					was, _ := event.MessageID(before[i].Value)
					if is, err := event.MessageID(after[i].Value); err != nil || is != was {
						t.Fatalf("event %d had the id %v, now %v, %v", i, was, is, err)
					}
				}
			})
		})
	}
}

// Dead letters leave nothing in the normalized topic. A takeover normalizes
// their records again, but does not write them again.
func TestATakeoverWritesNoDeadLetterAgain(t *testing.T) {
	for name, events := range map[string]int{"behind events": 10, "alone": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newFakeKafka(1)
				for i := range events {
					k.Append(numberedRecord(i))
				}

				for range 100 {
					k.Append(rawEvent(0, today(), "nobody"))
				}

				for range 3 {
					n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
					runUntilIdle(n)
					if got := len(k.All(event.TopicDead, 0)); got != 100 {
						t.Fatalf("%d dead letters", got)
					}
				}

				k.Append(rawEvent(0, today(), "nobody"))
				runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
				if got := len(k.All(event.TopicDead, 0)); got != 101 {
					t.Errorf("%d dead letters after one more", got)
				}
			})
		})
	}
}

// A normalizer that was slow to stop wrote old positions behind newer ones.
func TestATakeoverGoesOnBehindTheNewestPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		for i := range 500 {
			k.Append(numberedRecord(i))
		}

		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		late := k.All(event.TopicEvents, 0)[200:450]
		for _, r := range late {
			k.Append(r)
		}

		k.Append(kafka.Record{Topic: event.TopicEvents, Value: []byte("of another writer")})
		size := len(k.All(event.TopicEvents, 0))
		n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		runUntilIdle(n)

		if got := len(k.All(event.TopicEvents, 0)); got != size {
			t.Errorf("%d events were written again", got-size)
		}

		k.Append(numberedRecord(500))
		runUntilIdle(n)
		numbers, positions := delivered(t, copyWithout(k, "of another writer"))
		if len(numbers) != 501 || positions[500] != "0:500" {
			t.Errorf("%d events, the last at %s", len(numbers), positions[len(positions)-1])
		}
	})
}

// copyWithout is k less the records of that value in cc.evt.
func copyWithout(k *kafkatest.Log, value string) *kafkatest.Log {
	c := newFakeKafka(1)
	for _, r := range k.All(event.TopicEvents, 0) {
		if string(r.Value) != value {
			c.Append(r)
		}
	}
	return c
}
