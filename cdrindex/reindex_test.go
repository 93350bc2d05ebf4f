package cdrindex

import (
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
	"trunkline/internal/testservice/testdb"
)

func TestReindexWritesWhatIsMissingAndRemovesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		topic := newMemory(2)
		storeRows(t, x, call("acme", "gone from the topic", november))
		for i := range 50 {
			topic.addCall(call("acme", name("c%d", i), november), i%2, int64(i))
		}

		stop := startIndexer(t, x, topic)
		defer stop()

		waitUntil(t, "the end", func() bool { return indexedOffset(t, x, 0) == 25 && indexedOffset(t, x, 1) == 25 })
		// Possible actions of an operator.
		for _, statement := range []string{
			`DELETE FROM ` + rowsTable + ` WHERE call_id = 'c1'`,
			`DELETE FROM ` + callsTable + ` WHERE call_id = 'c1'`,
			`DELETE FROM ` + rowsTable + ` WHERE call_id = 'c2'`,
			`UPDATE ` + rowsTable + ` SET hangup_cause = 'WRONG' WHERE call_id = 'c3'`,
		} {
			if _, err := x.db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}

		var last Progress
		done, err := x.Reindex(t.Context(), topic, func(p Progress) {
			if p.Done <= last.Done || p.Total != 50 || p.Partitions != 2 {
				t.Errorf("%+v after %+v", p, last)
			}
			last = p
		})
		if err != nil || done != last || done.Done != 50 || done.Rows != 50 {
			t.Errorf("%+v, last told %+v, %v", done, last, err)
		}

		ids := listCallIDs(t, x, inRange("acme", 0, endOfTime))
		if len(ids) != 51 {
			t.Errorf("%d rows", len(ids))
		}

		err = x.Each(t.Context(), inRange("acme", 0, endOfTime), func(r *event.CDR) error {
			if r.HangupCause != "" {
				t.Errorf("%s is still wrong", r.CallID)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestReindexPassesAHole(t *testing.T) {
	x := openIndex(t, Settings{}, testdb.SQLite(t))
	topic := newMemory(1)
	topic.Delete(event.TopicCDR, 0, 7)

	for i := range 20 {
		topic.addCall(call("acme", name("c%d", i), november), 0, int64(i))
	}

	topic.Damage = &kafka.GapError{Kind: kafka.GapDamaged, Offset: 12, Resume: 14}
	done, err := x.Reindex(t.Context(), topic, nil)
	if err != nil || done.Done != 20 || done.Rows != 18 {
		t.Errorf("%+v, %v", done, err)
	}
}
