package figures

import (
	"testing"

	"trunkline/internal/fault"
	"trunkline/stats"
)

func TestRequestsToFoldAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		r := s.Rebuilds()
		if err := r.Create(t.Context(),
			[]stats.Rebuild{{ID: "a", Partition: 1, From: 900, Total: 10},
				{ID: "a", Partition: 2, From: 900, Total: 20}}); err != nil {
			t.Fatal(err)
		}

		if err := r.Create(t.Context(),
			[]stats.Rebuild{{ID: "b", Partition: 1}}); fault.KindOf(err) != fault.KindConflict {
			t.Errorf("a second request: %v", err)
		}

		half := stats.Rebuild{ID: "a", Partition: 1, From: 900, State: stats.RebuildOpen, Folded: 5, Total: 10}
		failed := stats.Rebuild{ID: "a", Partition: 2, From: 900, State: stats.RebuildFailed, Message: "no log",
			Total: 20}
		for _, one := range []stats.Rebuild{half, failed} {
			if err := r.Update(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}

		open, err := r.ListOpen(t.Context())
		if err != nil || len(open) != 1 || open[0] != half {
			t.Errorf("open: %+v, %v", open, err)
		}

		late := failed // of a node that was slow
		late.State, late.Message = stats.RebuildDone, ""
		done := half
		done.State, done.Folded = stats.RebuildDone, 10

		for _, one := range []stats.Rebuild{late, done} {
			if err := r.Update(t.Context(), one); err != nil {
				t.Fatal(err)
			}
		}

		all, err := r.List(t.Context())
		if err != nil || len(all) != 2 || all[0] != done || all[1] != failed {
			t.Errorf("all: %+v, %v", all, err)
		}

		if err := r.Create(t.Context(), []stats.Rebuild{{ID: "b", Partition: 1}}); err != nil {
			t.Error(err)
		}
		if err := r.Update(t.Context(), done); err != nil {
			t.Error(err)
		}

		open, err = r.ListOpen(t.Context())
		if err != nil || len(open) != 1 || open[0].ID != "b" {
			t.Errorf("open: %+v, %v", open, err)
		}
	})
}
