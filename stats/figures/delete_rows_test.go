package figures

import (
	"testing"
	"time"
)

func TestRowsOfADeletedAccountAndExpiredRowsAreDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		acme, other := records(0, 50, workday("acme", 0, 200, time.Hour)), records(0, 50,
			workday("other", 0, 200, time.Hour))
		s.storeRecords(t, 0, acme)
		s.storeRecords(t, 0, other)

		for {
			n, err := s.PurgeAccount(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}

			if n == 0 {
				break
			}
		}

		s.same(t, "acme", nil)
		s.same(t, "other", lastRows(other))

		if err := s.deleteBefore(t.Context(), day0.Add(30*time.Minute).Unix()); err != nil {
			t.Fatal(err)
		}
		if rows := s.listRows(t, wholeDay(Queues, "other")); len(rows) != 6 { // of three queues in two of four quarters
			t.Errorf("%d rows are left", len(rows))
		}
	})
}

func TestSumsAreDeletedWithTheirAccountAndTheirAge(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		for d := range 3 {
			s.put(t, quarterOf("queue-1", autumn.AddDate(0, 0, d), 1, 7))
		}

		s.mustSumDays(t, time.UTC, autumn.AddDate(0, 0, 3))
		if err := s.deleteBefore(t.Context(), autumn.Unix()+1); err != nil {
			t.Fatal(err)
		}
		if days, sums := s.count(t, "figures_days"), s.count(t, dayTable); days != 2 || sums != 2 {
			t.Errorf("%d days and %d sums are left", days, sums)
		}

		for {
			n, err := s.PurgeAccount(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}

			if n == 0 {
				break
			}
		}

		if days, sums := s.count(t, "figures_days"), s.count(t, dayTable); days != 0 || sums != 0 {
			t.Errorf("%d days and %d sums of a deleted account", days, sums)
		}
	})
}
