package figures

import (
	"testing"
	"time"
)

func TestQueuesSinceATimeAreAddedUp(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		for partition, account := range []string{"acme", "acme", "other"} {
			s.storeRecords(t, partition, records(partition, 50, workday(account, partition, 90, time.Hour)))
		}

		rows, err := s.QueuesSince(t.Context(), []string{"acme", "none"}, day0.Unix())
		if err != nil || len(rows) != 3 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}

		for _, r := range rows {
			if r.AccountID != "acme" || r.Figure("offered") != 60 || r.Figure("service_level_seconds") != 20 ||
				r.ID == "queue-1" && r.Figure("wait_ms_max") != 4000 {
				t.Errorf("%+v", r)
			}
		}

		later, err := s.QueuesSince(t.Context(), []string{"acme"}, day0.Add(30*time.Minute).Unix())
		if err != nil || len(later) != 3 || later[0].Figure("offered") >= 60 {
			t.Errorf("%+v, %v", later, err)
		}
	})
}
