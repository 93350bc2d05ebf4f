package cdrindex

import (
	"context"
	"sync"
	"testing"
	"time"

	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

func TestRetentionDropsWholeMonths(t *testing.T) {
	now := time.Now()
	month := func(ago int) int64 { return (monthOf(now.Unix()) - month(ago)).start() + 60 }
	for kind, at := range map[string]func(*testing.T) sqldb.Config{
		"sqlite":   func(t *testing.T) sqldb.Config { return testdb.SQLite(t) },
		"postgres": func(t *testing.T) sqldb.Config { return sqldb.Config{URL: testservice.Postgres(t)} },
	} {
		t.Run(kind, func(t *testing.T) {
			db := at(t)
			storeRows(t, openIndex(t, Settings{}, db), call("acme", "now", month(0)), call("acme", "m2", month(2)),
				call("acme", "m3", month(3)), call("acme", "m30", month(30)))
			x := openIndex(t, Settings{RetentionMonths: 2}, db)
			all := inRange("acme", 0, endOfTime)

			for range 2 {
				if err := x.maintainPartitions(t.Context(), now); err != nil {
					t.Fatal(err)
				}

				checkIDs(t, listCallIDs(t, x, all), "now", "m2")
				if n := count(t, x, callsTable); n != 2 {
					t.Errorf("%d calls are known", n)
				}
			}

			if did := applyRecords(t, x, false,
				record(call("acme", "m3", month(3)), 0, 9)); did != (batchCounts{expired: 1}) {
				t.Errorf("what is too old: %+v", did)
			}
			if did := applyRecords(t, x, false,
				record(call("acme", "m2", month(4)), 0, 10)); did != (batchCounts{expired: 1}) {
				t.Errorf("what became too old: %+v", did)
			}

			checkIDs(t, listCallIDs(t, x, all), "now")
		})
	}
}

func TestPartitionsAreMadeAhead(t *testing.T) {
	x := openIndex(t, Settings{}, sqldb.Config{URL: testservice.Postgres(t)})
	now := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	var group sync.WaitGroup

	for range 4 { // nodes
		group.Go(func() {
			if err := x.maintainPartitions(context.Background(), now); err != nil {
				t.Error(err)
			}
			x.clearKnownPartitions()
		})
	}

	group.Wait()
	err := x.db.BulkTx(t.Context(), func(tx *sqldb.BulkTx) error {
		existing, err := listPartitions(t.Context(), tx)
		if len(existing) != 3 {
			t.Errorf("got %v", existing)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
