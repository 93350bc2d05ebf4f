package normalizer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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
