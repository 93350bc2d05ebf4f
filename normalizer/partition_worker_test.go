package normalizer

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/internal/kafka"
)

var acmeOnly = accountsFunc(func(id string) (bool, error) { return id == "acme", nil })

// runUntilIdle runs n until nothing more happens.
func runUntilIdle(n *Normalizer) {
	stop := start(n)
	time.Sleep(time.Minute)
	stop()
}

func recordOffsets(t *testing.T, records []kafka.Record) (at []int64) {
	t.Helper()
	for _, r := range records {
		p, err := event.ParsePosition(string(r.Header(event.HeaderPosition)))
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, p.Offset)
	}
	return at
}

func TestRecordsThatRetentionTookAreSaidAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		k.Delete(event.TopicRaw, 0, 100)
		k.Progress(event.TopicRaw, 0).Commit(90)
		k.Append(rawEvent(0, time.Now(), "acme"))
		n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		runUntilIdle(n)

		if at := recordOffsets(t, k.All(event.TopicEvents, 0)); len(at) != 1 || at[0] != 100 {
			t.Errorf("positions %v", at)
		}
		if lost := testutil.ToFloat64(n.metrics.lost.WithLabelValues(event.TopicRaw)); lost != 10 {
			t.Errorf("%v lost, want 10", lost)
		}
	})
}

func TestDamagedRecordsAreSkippedSaidAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		k.MaxRead = 1
		k.Damage = &kafka.GapError{Topic: event.TopicRaw, Kind: kafka.GapDamaged, Offset: 2, Resume: 4,
			Reason: "checksum"}

		for range 6 {
			k.Append(rawEvent(0, time.Now(), "acme"))
		}

		n := newTestNormalizer(t, k, acmeOnly, event.TopicRaw)
		runUntilIdle(n)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1 4 5]" {
			t.Errorf("positions %v", at)
		}
		if lost := testutil.ToFloat64(n.metrics.lost.WithLabelValues(event.TopicRaw)); lost != 2 {
			t.Errorf("%v lost, want 2", lost)
		}
	})
}

// While the account store is unavailable, the records before it are written
// and nothing is skipped.
func TestAPartitionWaitsForTheAccountStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		back := time.Now().Add(20 * time.Second)
		accounts := accountsFunc(func(id string) (bool, error) {
			if id == "acme" {
				return true, nil
			}
			if time.Now().Before(back) {
				return false, errAway
			}

			return true, nil
		})

		for _, id := range []string{"acme", "acme", "new", "acme"} {
			k.Append(rawEvent(0, time.Now(), id))
		}

		k.MaxRead = 1000
		stop := start(newTestNormalizer(t, k, accounts, event.TopicRaw))
		defer stop()

		time.Sleep(10 * time.Second)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1]" {
			t.Errorf("before: positions %v", at)
		}

		time.Sleep(20 * time.Second)
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicEvents, 0))); at != "[0 1 2 3]" {
			t.Errorf("after: positions %v", at)
		}
	})
}

// A stranger's record at the end of the topic stops nothing.
func TestAPartitionStartsBehindAForeignRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		k.Append(kafka.Record{Topic: event.TopicEvents, Value: []byte("hello")})
		k.Append(rawEvent(0, time.Now(), "acme"))
		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicRaw))
		if got := k.All(event.TopicEvents, 0); len(got) != 2 || string(got[1].Header(event.HeaderPosition)) != "0:0" {
			t.Errorf("got %v", got)
		}
	})
}

func TestCallRecordsTakeTheSameWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newFakeKafka(1)
		now := time.Now()
		for i := range 5 {
			k.Append(kafka.Record{Topic: event.TopicCDRRaw, Time: now, Key: []byte("acme"),
				Value: fmt.Appendf(nil, `{"call_id":"c%d","timestamp":%d}`, i, now.Unix()-int64(i%2)*1e9)})
		}

		runUntilIdle(newTestNormalizer(t, k, acmeOnly))
		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicCDR, 0))); at != "[0 2 4]" {
			t.Errorf("positions %v", at)
		}
		if dead := k.All(event.TopicDead, 0); len(dead) != 2 ||
			string(dead[0].Header(event.HeaderOrigTopic)) != event.TopicCDRRaw {
			t.Errorf("dead letters %v", dead)
		}

		k.Append(kafka.Record{Topic: event.TopicCDRRaw, Time: now, Key: []byte("acme"),
			Value: fmt.Appendf(nil, `{"call_id":"c5","timestamp":%d}`, now.Unix())})
		runUntilIdle(newTestNormalizer(t, k, acmeOnly, event.TopicCDRRaw))

		if at := fmt.Sprint(recordOffsets(t, k.All(event.TopicCDR, 0))); at != "[0 2 4 5]" {
			t.Errorf("after a restart: positions %v", at)
		}
	})
}
