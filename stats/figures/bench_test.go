package figures

import (
	"fmt"
	"testing"

	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

// BenchmarkReportOf400Days reads 400 days of 50 queues, which have a row in each quarter of an hour of ten
// hours a day: 800,000 rows, whose days are added up. A page is the first answer of the API, all is every day
// of every queue, history is what the board's History asks for: sums of days, and of queues beside the week before.
func BenchmarkReportOf400Days(b *testing.B) {
	const days, queues, quarters = 400, 50, 40
	for _, name := range []string{"sqlite", "postgres"} {
		b.Run(name, func(b *testing.B) {
			at := testdb.SQLite(b)
			if name == "postgres" {
				at = sqldb.Config{URL: testservice.Postgres(b)}
			}

			s := openStore(b, at)
			series := func(n int) string {
				return fmt.Sprintf(
					"(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < %d) SELECT i FROM n)",
					n-1)
			}

			for _, query := range []string{
				fmt.Sprintf(`INSERT INTO figures_queues SELECT 'demo', 'queue-' || q.i, %d + d.i * 86400 + 28800 + t.i * 900, 900, 0, 1, 9, 7, 2, 1, 6, 0, 20, 5, 90000, 40000, 9000, 700000, 0, 60000
					FROM %s d, %s t, %s q`, day0.Unix(), series(days), series(quarters), series(queues)),
				"ANALYZE",
			} {
				if _, err := s.db.ExecContext(b.Context(), query); err != nil {
					b.Fatal(err)
				}
			}

			zone := berlin(b)
			if err := s.sumDays(b.Context(), "demo", zone, day0.AddDate(0, 0, days-2)); err != nil {
				b.Fatal(err)
			}

			f := Filter{Filter: report.Filter{Account: "demo", Start: day0.Unix(), End: day0.Unix() + days*86400 - 1,
				PageSize: report.MaxPage}, Location: zone, Seconds: day}
			for _, interval := range []int64{day, hour} {
				b.Run(fmt.Sprintf("page-of-%ds", interval), func(b *testing.B) {
					f := f
					f.Seconds = interval
					for b.Loop() {
						page, err := s.List(b.Context(), f)
						if err != nil || len(page.Data) != report.MaxPage {
							b.Fatalf("%d rows, %v", len(page.Data), err)
						}
					}
				})
			}

			b.Run("history", func(b *testing.B) {
				for b.Loop() {
					byDay, byQueue, before := f, f, f
					byDay.GroupBy, byQueue.GroupBy, before.GroupBy = ByInterval, ByID, ByID
					before.Start, before.End = f.Start-7*day, f.End-7*day

					for rows, f := range map[int]Filter{days: byDay, queues: byQueue, -queues: before} {
						page, err := s.List(b.Context(), f)
						if err != nil || len(page.Data) != max(rows, -rows) {
							b.Fatalf("%d rows, %v", len(page.Data), err)
						}
					}
				}
			})

			b.Run("all-days", func(b *testing.B) {
				for b.Loop() {
					rows, offered := 0, int64(0)
					err := s.Each(b.Context(), f, func(r *Row) error {
						rows++
						offered += r.Figure("offered")
						return nil
					})
					if err != nil || rows != days*queues || offered != 9*days*queues*quarters {
						b.Fatalf("%d rows, %d offered, %v", rows, offered, err)
					}
				}
			})
		})
	}
}
