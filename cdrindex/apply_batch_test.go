package cdrindex

import (
	"strings"
	"sync"
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
)

func ptr(n int64) *int64 { return &n }

func TestTheNewestRecordIsTheRow(t *testing.T) {
	const august = -80 * 24 * 3600
	type version struct {
		partition, offset int
		started           int64 // from november
		cause             string
	}

	old := version{0, 1, 5, "OLD"}
	for name, batches := range map[string][][]version{
		"later, in another batch":   {{old}, {{0, 2, 6, "NEW"}}},
		"later, in the same batch":  {{old, {0, 2, 6, "NEW"}}},
		"later, but read first":     {{{0, 2, 6, "NEW"}}, {old}},
		"later, in the same second": {{old}, {{0, 2, 5, "NEW"}}},
		"an old one repeated after": {{old, {0, 2, 6, "NEW"}}, {old}},
		"moved to the next month":   {{old}, {{0, 2, december - november, "NEW"}}},
		"moved to an older month":   {{old}, {{0, 2, august, "NEW"}}},
		"moved twice": {{{0, 1, august, "OLD"}}, {{0, 2, 5, "OLD"}},
			{{0, 3, december - november, "NEW"}}},
		"in another partition by time": {{{3, 100, 5, "OLD"}}, {{1, 200, 6, "NEW"}}, {{3, 100, 5, "OLD"}}},
		"all of it again":              {{old}, {{0, 2, 6, "NEW"}}, {old}, {{0, 2, 6, "NEW"}}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			onBoth(t, func(t *testing.T, x *Index) {
				for account, again := range map[string]bool{"indexed": false, "reindexed": true} {
					for _, versions := range batches {
						var records []kafka.Record
						for _, v := range versions {
							row := call(account, "c", november+v.started)
							row.HangupCause = v.cause
							records = append(records, record(row, v.partition, int64(v.offset)))
						}

						applyRecords(t, x, again, records...)
					}

					page, err := x.List(t.Context(), inRange(account, 0, endOfTime))
					if err != nil {
						t.Fatal(err)
					}

					if len(page.Data) != 1 || page.Data[0].HangupCause != "NEW" {
						t.Errorf("%s: got %+v", account, page.Data)
					}
				}

				if n := count(t, x, callsTable); n != 2 {
					t.Errorf("%d calls are known", n)
				}
			})
		})
	}
}

func TestAReindexWritesRowsThatAreThere(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		r := record(call("acme", "c", november), 0, 1)
		for _, step := range []struct {
			again bool
			want  batchCounts
		}{{false, batchCounts{rows: 1}}, {false, batchCounts{older: 1}}, {true, batchCounts{rows: 1}}} {
			if did := applyRecords(t, x, step.again, r); did != step.want {
				t.Errorf("again %v: %+v, want %+v", step.again, did, step.want)
			}
		}

		if n := count(t, x, rowsTable); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestTheSameCallIDInTwoAccountsIsTwoRows(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		storeRows(t, x, call("acme", "c", november), call("zeta", "c", november))
		for _, account := range []string{"acme", "zeta"} {
			checkIDs(t, listCallIDs(t, x, inRange(account, november, november)), "c")
		}
		checkIDs(t, listCallIDs(t, x, inRange("acm", 0, endOfTime)))
	})
}

// Many writers write the same calls, new and existing: one row of each remains, the
// newest.
func TestWritersThatMeetAtACall(t *testing.T) {
	onBoth(t, func(t *testing.T, x *Index) {
		const writers, calls, versions = 4, 20, 6
		var group sync.WaitGroup
		for range writers {
			group.Go(func() {
				for v := range versions {
					var records []kafka.Record
					for c := range calls {
						row := call("acme", name("c%02d", c), november+int64(v)*20*24*3600)
						row.HangupCause = name("v%d", v)
						records = append(records, record(row, 0, int64(v*calls+c)))
					}

					applyRecords(t, x, v%2 == 0, records...)
				}
			})
		}

		group.Wait()
		if rows, known := count(t, x, rowsTable), count(t, x, callsTable); rows != calls || known != calls {
			t.Errorf("%d rows and %d calls, want %d", rows, known, calls)
		}

		err := x.Each(t.Context(), inRange("acme", 0, endOfTime), func(r *event.CDR) error {
			if r.HangupCause != "v5" {
				t.Errorf("%s has %s", r.CallID, r.HangupCause)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// An Asterisk without the mapping of the sequence sends a record with the same call id for every phone of
// a ring group, and for every Dial of a channel, in any order.
func TestTheBestOfSeveralRecordsOfACallIsItsRow(t *testing.T) {
	part := func(from string, started, billed int64, cause string) event.CDR {
		row := call("acme", "c", started)
		row.From, row.HangupCause, row.BillingSeconds = from, cause, new(billed)
		if billed > 0 {
			row.AnsweredTime = started + 3
		}
		return row
	}

	rows := []event.CDR{ // best first
		part("answered later", november+20, 7, "NORMAL_CLEARING"),
		part("answered", november, 9, "NORMAL_CLEARING"),
		part("no answer, later", november+40, 0, "NO_ANSWER"),
		part("no answer", november, 0, "NO_ANSWER"),
	}

	several := func(i int, offset int64) kafka.Record {
		r := record(rows[i], 0, offset)
		r.Headers = append(r.Headers, kafka.Header{Key: event.HeaderOneOfSeveral, Value: []byte("1")})
		return r
	}

	onBoth(t, func(t *testing.T, x *Index) {
		offset := int64(0)
		for i := range rows {
			for j := range rows {
				for _, together := range []bool{true, false} {
					if _, err := x.PurgeAccount(t.Context(), "acme"); err != nil {
						t.Fatal(err)
					}

					first, second := several(i, offset), several(j, offset+1)
					offset += 2
					if together {
						applyRecords(t, x, false, first, second)
					} else {
						applyRecords(t, x, false, first)
						applyRecords(t, x, false, second)
						applyRecords(t, x, true, first) // a reindex
					}

					want := rows[min(i, j)].From
					page, err := x.List(t.Context(), inRange("acme", november, november+60))
					if err != nil || len(page.Data) != 1 || page.Data[0].From != want {
						t.Errorf("%q then %q, in one batch %t: got %+v, %v", rows[i].From, rows[j].From, together,
							page.Data, err)
					}
				}
			}
		}
	})
}
