package cdrindex

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice/testdb"
)

func indexedOffset(t testing.TB, x *Index, partition int) int64 {
	t.Helper()
	var next int64
	err := x.db.QueryRowContext(context.Background(), `SELECT COALESCE(MAX(next), 0) FROM log_positions
		WHERE consumer = 'cdrindex' AND topic_partition = $1`, partition).Scan(&next)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// Three indexers have every partition at the same time, and every raw record
// was normalized once, twice, or again much later.
func TestIndexersThatOverlapLeaveOneRowOfEachCall(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		const partitions, each = 2, 600
		topic := newMemory(partitions)
		random := rand.New(rand.NewPCG(5, 6))
		want := map[callKey]string{}

		for p := range partitions {
			var rows []event.CDR
			for source := range each {
				row := call(name("account-%d", p), name("c%d", random.IntN(200)), november+random.Int64N(90*24*3600))
				row.HangupCause = name("v%d", source)
				rows = append(rows, row)
				topic.addCall(row, p, int64(source))
				want[callKey{row.AccountID, row.CallID}] = row.HangupCause

				if random.IntN(3) == 0 {
					back := random.IntN(len(rows))
					for again := back; again < len(rows) && again < back+5; again++ {
						topic.addCall(rows[again], p, int64(again))
					}
				}
			}
		}

		for range 3 {
			defer startIndexer(t, x, topic)()
		}

		for p := range partitions {
			_, end, _ := topic.Offsets(t.Context(), event.TopicCDR, p)
			waitUntil(t, "the topic's end", func() bool { return indexedOffset(t, x, p) == end })
		}

		got := 0
		for p := range partitions {
			err := x.Each(t.Context(), inRange(name("account-%d", p), 0, endOfTime),
				func(r *event.CDR) error {
					got++
					if w := want[callKey{r.AccountID, r.CallID}]; r.HangupCause != w {
						t.Errorf("%s has %s, want %s", r.CallID, r.HangupCause, w)
					}
					return nil
				})
			if err != nil {
				t.Fatal(err)
			}
		}

		if got != len(want) || count(t, x, rowsTable) != len(want) || count(t, x, callsTable) != len(want) {
			t.Errorf("%d rows, want %d", got, len(want))
		}
	})
}

func TestARecordThatIsNoRowCostsOnlyItself(t *testing.T) {
	x := openIndex(t, Settings{}, testdb.SQLite(t))
	topic := newMemory(1)
	for i := range 100 {
		row := call("acme", name("c%02d", i), november)
		if i == 50 {
			row.CallID = ""
		}
		topic.addCall(row, 0, int64(i))
	}
	defer startIndexer(t, x, topic)()

	waitUntil(t, "all are done", func() bool { return indexedOffset(t, x, 0) == 100 })
	if n := count(t, x, rowsTable); n != 99 {
		t.Errorf("%d rows", n)
	}

	waitUntil(t, "it is counted",
		func() bool { return testutil.ToFloat64(x.metrics.records.WithLabelValues(resultInvalid)) == 1 })
}

func TestAHoleInTheTopicIsSaidAndPassed(t *testing.T) {
	x := openIndex(t, Settings{}, testdb.SQLite(t))
	topic := newMemory(1)
	for i := range 10 {
		topic.addCall(call("acme", name("a%d", i), november), 0, int64(i))
	}

	stop := startIndexer(t, x, topic)
	waitUntil(t, "the first ten", func() bool { return indexedOffset(t, x, 0) == 10 })
	stop()
	topic.Delete(event.TopicCDR, 0, 25) // records 10 to 24 were written and deleted

	for i := range 10 {
		topic.addCall(call("acme", name("b%d", i), november), 0, int64(25+i))
	}

	topic.Damage = &kafka.GapError{Kind: kafka.GapDamaged, Offset: 30, Resume: 32}
	stop = startIndexer(t, x, topic)
	waitUntil(t, "the rest", func() bool { return indexedOffset(t, x, 0) == 35 })
	stop()

	if n := count(t, x, rowsTable); n != 18 {
		t.Errorf("%d rows", n)
	}
	if lost := testutil.ToFloat64(x.metrics.lost); lost != 15+2 {
		t.Errorf("%v lost", lost)
	}
}

// A recreated topic counts offsets from 0 again: its records are newer all the same.
func TestATopicMadeAnewIsReadFromItsBeginning(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		topic := newMemory(1)
		row := call("acme", "c", november)
		row.HangupCause = "OLD"

		for i := range 10 {
			topic.addCall(row, 0, int64(i))
		}

		stop := startIndexer(t, x, topic)
		waitUntil(t, "the first ten", func() bool { return indexedOffset(t, x, 0) == 10 })
		stop()
		topic.Recreate(event.TopicCDR)
		row.HangupCause = "NEW"
		topic.addCall(row, 0, 0)
		defer startIndexer(t, x, topic)()

		waitUntil(t, "the new topic's end", func() bool { return indexedOffset(t, x, 0) == 1 })
		page, err := x.List(t.Context(), inRange("acme", 0, endOfTime))
		if err != nil || len(page.Data) != 1 || page.Data[0].HangupCause != "NEW" {
			t.Errorf("got %+v, %v", page, err)
		}
	})
}

// The cdr topic was truncated, and grew past its earlier end before the indexer polled:
// the records that replace the lost ones are indexed.
func TestATopicThatLostItsEndIsReadFromThere(t *testing.T) {
	for when, running := range map[string]bool{"stopped": false, "running": true} {
		t.Run(when, func(t *testing.T) {
			onBoth(t, func(t *testing.T, x *Index) {
				topic := newMemory(1)
				for i := range 20 {
					topic.addCall(call("acme", name("a%d", i), november), 0, int64(i))
				}

				stop := startIndexer(t, x, topic)
				waitUntil(t, "the first records", func() bool { return indexedOffset(t, x, 0) == 20 })
				if !running {
					stop()
				}

				topic.Truncate(event.TopicCDR, 0, 10)
				for i := range 30 {
					topic.addCall(call("acme", name("b%d", i), november), 0, int64(20+i))
				}

				if running {
					defer stop()
				} else {
					defer startIndexer(t, x, topic)()
				}

				waitUntil(t, "the end",
					func() bool { return indexedOffset(t, x, 0) == 40 && count(t, x, rowsTable) == 50 })
				waitUntil(t, "it is counted", func() bool {
					return testutil.ToFloat64(x.metrics.restarts.WithLabelValues(string(kafka.GapTruncated))) == 1
				})
			})
		})
	}
}

// A truncated raw log uses offsets again: a record of the next generation is newer than
// all of the one before.
func TestARecordOfALaterGenerationIsNewer(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		old, newer := record(call("acme", "c", november), 0, 100), record(call("acme", "c", november+1), 0, 50)
		newer.Headers = []kafka.Header{{Key: event.HeaderPosition,
			Value: []byte(event.Position{Offset: 50, Generation: 1}.String())}}

		if did := applyRecords(t, x, false, old); did.rows != 1 {
			t.Fatalf("%+v", did)
		}
		if did := applyRecords(t, x, false, newer); did.rows != 1 {
			t.Errorf("the newer one: %+v", did)
		}
		if did := applyRecords(t, x, false, old); did.older != 1 {
			t.Errorf("the older one again: %+v", did)
		}
	})
}
