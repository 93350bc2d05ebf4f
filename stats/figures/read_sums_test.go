package figures

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"trunkline/internal/report"
)

// What the database adds up is what the stored rows give one by one: in zones whose clock changes, or that
// are no whole hours from UTC, from several partitions, with thresholds that change.
func TestSumsOfTheDatabaseAreThoseOfTheRows(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		random := rand.New(rand.NewPCG(1, 2))
		first := time.Date(2026, 10, 23, 0, 0, 0, 0, time.UTC).Unix() // Berlin's clock changes on the 25th
		const days = 6

		for i := range 900 {
			start := first + random.Int64N(days*96)*quarterHour
			values := []any{"demo", fmt.Sprint("queue-", i%3), start, quarterHour, i % 2, 1}
			for _, figure := range Queues.table().figures {
				n := random.Int64N(1000)
				switch figure.name {
				case "service_level_seconds": // of the time: the newest row decides
					n = start / quarterHour % 86400
				case "short_abandon_seconds":
					n = start / hour % 86400
				}

				values = append(values, n)
			}

			_, err := s.db.ExecContext(t.Context(), `INSERT INTO figures_queues VALUES
				($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) ON CONFLICT DO NOTHING`,
				values...)
			if err != nil {
				t.Fatal(err)
			}
		}

		for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe"} {
			location, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}

			for _, seconds := range []int64{hour, day} {
				f := Filter{Filter: report.Filter{Account: "demo", Start: first + 3*quarterHour,
					End: first + days*day - 1}, Location: location, Seconds: seconds}
				want := map[string]*Row{}
				quarters := f
				quarters.Seconds = quarterHour

				if err := s.eachStored(t.Context(), quarters, func(r *Row) error {
					key := fmt.Sprint(intervalStart(time.Unix(r.Start, 0).In(location), seconds).Unix(), " ", r.ID)
					if sum, ok := want[key]; ok {
						sum.addRow(r)
					} else {
						want[key] = r
					}

					return nil
				}); err != nil {
					t.Fatal(err)
				}

				got := 0
				if err := s.Each(t.Context(), f, func(r *Row) error {
					got++
					key := fmt.Sprint(r.Start, " ", r.ID)
					if w := want[key]; w == nil || !slices.Equal(r.figures, w.figures) {
						t.Errorf("%s, %d s, %s: %v, want %v", zone, seconds, key, r.figures, w)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}

				if got != len(want) {
					t.Errorf("%s, %d s: %d rows, want %d", zone, seconds, got, len(want))
				}
			}
		}
	})
}
