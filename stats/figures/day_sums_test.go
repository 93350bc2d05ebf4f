package figures

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/event"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
)

// autumn is a week of Berlin in whose middle the clock is put back.
var autumn = time.Date(2024, 10, 24, 0, 0, 0, 0, time.UTC)

// quarterOf is a row of a queue's quarter.
func quarterOf(queue string, start time.Time, id event.ID, offered int64) entry {
	e := entry{eventID: id, Row: Row{Kind: Queues, AccountID: "acme", ID: queue, Start: start.Unix(),
		Seconds: quarterHour,
		figures: make([]int64, len(tables[Queues].figures))}}
	for name, n := range map[string]int64{"offered": offered, "wait_ms_max": offered * 1000,
		"service_level_seconds": 20 + offered%7} {
		e.figures[tables[Queues].index(name)] = n
	}
	return e
}

// put stores rows as a batch of events does.
func (s *Store) put(t testing.TB, rows ...entry) {
	t.Helper()
	if err := (&batch{tables: s, entries: rows}).Store(t.Context(), stay); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) mustSumDays(t testing.TB, zone *time.Location, until time.Time) {
	t.Helper()
	if err := s.sumDays(t.Context(), "acme", zone, until); err != nil {
		t.Fatal(err)
	}
}

// count returns the number of rows of a table.
func (s *Store) count(t testing.TB, table string) (n int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func berlin(t testing.TB) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// reports returns the rows of many reports of a week: by days, of one queue, of what a role sees, of
// a range that cuts days, and their sums.
func (s *Store) reports(t testing.TB, zone *time.Location) (all []string) {
	t.Helper()
	week := Filter{Filter: report.Filter{Account: "acme", Start: autumn.Unix() - 7200,
		End: autumn.AddDate(0, 0, 7).Unix()}, Location: zone, Seconds: day}
	one, seen, cut := week, week, week
	one.ID, seen.Visible = "queue-1", &report.Visible{Queues: []string{"queue-0", "queue-2"}}
	cut.Start, cut.End = autumn.Unix()+30*3600, autumn.Unix()+130*3600

	for _, f := range []Filter{week, one, seen, cut} {
		for _, f.GroupBy = range []GroupBy{"", ByID, ByInterval} {
			whole := s.listRows(t, f)
			f.PageSize = 1
			sameReports(t, "in pages of one row", s.listRows(t, f), whole)
			all = append(all, whole...)
		}
	}

	return all
}

// sameReports reports the first row that differs.
func sameReports(t testing.TB, when string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("%s: %d rows, want %d; row %d is\n%s, want\n%s", when, len(got), len(want), i,
				got[min(i, len(got)-1)], want[min(i, len(want)-1)])
			return
		}
	}
}

func TestReportsOfDaysWithSumsAreThoseOfTheirRows(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		zone := berlin(t)
		var rows []entry
		for i := range 7 * 96 {
			for q, queue := range []string{"queue-0", "queue-1", "queue-2"} {
				if (i+q)%5 == 0 && i/96 != 4 { // nothing comes on the fifth day
					rows = append(rows, quarterOf(queue, autumn.Add(time.Duration(i)*15*time.Minute), 1, int64(i+q)))
				}
			}
		}

		s.put(t, rows...)
		want := s.reports(t, zone)
		until := autumn.AddDate(0, 0, 6)
		s.mustSumDays(t, zone, until)

		if n := s.count(t, "figures_days"); n != 6 { // the first one begins before its first row
			t.Errorf("%d days have sums", n)
		}

		sameReports(t, "with sums", s.reports(t, zone), want)

		// A row that changes late is in reports at once.
		s.put(t, quarterOf("queue-1", autumn.Add(50*time.Hour), 2, 100_000))
		changed := s.reports(t, zone)
		if slices.Equal(changed, want) || s.count(t, "figures_days") != 5 {
			t.Errorf("a late row changed nothing: %d days have sums", s.count(t, "figures_days"))
		}

		s.mustSumDays(t, zone, until)
		sameReports(t, "with the sums of a late row", s.reports(t, zone), changed)
		if n := s.count(t, "figures_days"); n != 6 {
			t.Errorf("%d days have sums after a late row", n)
		}

		// Days of another time zone of the account are others.
		tokyo := time.FixedZone("", 9*3600)
		want = s.reports(t, tokyo)
		s.mustSumDays(t, tokyo, until)
		sameReports(t, "in another zone", s.reports(t, tokyo), want)
		sameReports(t, "back in the first zone", s.reports(t, zone), changed)
	})
}

func TestSumsAreReadInPlaceOfRows(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		s.put(t, quarterOf("queue-1", autumn, 1, 7))
		s.mustSumDays(t, time.UTC, autumn.AddDate(0, 0, 2))
		if _, err := s.db.ExecContext(t.Context(), "DELETE FROM figures_queues"); err != nil {
			t.Fatal(err)
		}

		for by, want := range map[GroupBy]int{"": 1, ByID: 1, ByInterval: 1} {
			f := Filter{Filter: report.Filter{Account: "acme", Start: autumn.Unix(),
				End: autumn.AddDate(0, 0, 1).Unix() - 1}, Seconds: day, GroupBy: by}
			if rows := s.listRows(t, f); len(rows) != want || !strings.Contains(rows[0], `"offered":7,`) {
				t.Errorf("by %q: %q", by, rows)
			}
		}
	})
}

// Two indexers add the days up while batches change their rows: whenever a day has sums, they are
// those of its rows.
func TestSumsAreAddedUpWhileRowsChange(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		const days, changes = 3, 60
		ctx, stop := context.WithCancel(t.Context())
		var adding sync.WaitGroup
		defer adding.Wait()
		defer stop()

		for range 2 {
			adding.Go(func() {
				for ctx.Err() == nil {
					err := s.sumDays(ctx, "acme", time.UTC, autumn.AddDate(0, 0, days))
					if err != nil && ctx.Err() == nil && !sqldb.IsUniqueViolation(err) {
						t.Error(err)
						return
					}
				}
			})
		}

		for n := range changes {
			s.put(t, quarterOf("queue-1", autumn.AddDate(0, 0, n%days), event.ID(n+1), int64(n+1)))
		}

		stop()
		adding.Wait()
		f := Filter{Filter: report.Filter{Account: "acme", Start: autumn.Unix(),
			End: autumn.AddDate(0, 0, days).Unix() - 1}, Seconds: day, GroupBy: ByID}
		if rows := s.listRows(t, f); len(rows) != 1 || !strings.Contains(rows[0], `"offered":177,`) { // 58 + 59 + 60
			t.Errorf("%q", rows)
		}
	})
}
