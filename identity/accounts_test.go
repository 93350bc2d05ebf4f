package identity

import (
	"context"
	"slices"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestAnAccountIsRenamedAndMoved(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		must(s.CreateAccount(t.Context(), NewAccount{ID: "a", Name: "A", Domain: "a.local"}))(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "b", Name: "B", Domain: "b.local"}))(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "c", Name: "C", Domain: "c.local", Parent: "a"}))(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "d", Name: "D", Domain: "d.local", Parent: "c"}))(t)
		moved := must(s.UpdateAccount(t.Context(), "c",
			AccountUpdate{Name: "See", Domain: "See.Local", Parent: "b", TimeZone: "Asia/Tokyo"}))(t)
		tree := s.Tree()
		if got, ok := tree.Account("c"); !ok || got != moved || got.Domain != "see.local" ||
			!slices.Equal(tree.Path("d"), []string{"d", "c", "b"}) {
			t.Errorf("moved %+v, stored %+v, path %v", moved, got, tree.Path("d"))
		}

		must(s.UpdateAccount(t.Context(), "c", AccountUpdate{Name: "See", Domain: "see.local"}))(t)
		if kept, _ := s.Tree().Account("c"); kept.TimeZone != "Asia/Tokyo" {
			t.Errorf("time zone %q", kept.TimeZone)
		}
		if !slices.Equal(s.Tree().Path("d"), []string{"d", "c"}) {
			t.Errorf("path %v", s.Tree().Path("d"))
		}

		for name, c := range map[string]struct {
			id   string
			u    AccountUpdate
			kind fault.Kind
		}{
			"unknown":        {"x", AccountUpdate{Name: "X", Domain: "x.local"}, fault.KindNotFound},
			"taken name":     {"c", AccountUpdate{Name: "A", Domain: "see.local"}, fault.KindConflict},
			"taken domain":   {"c", AccountUpdate{Name: "See", Domain: "B.local"}, fault.KindConflict},
			"no name":        {"c", AccountUpdate{Domain: "see.local"}, fault.KindInvalid},
			"unknown parent": {"c", AccountUpdate{Name: "See", Domain: "see.local", Parent: "x"}, fault.KindInvalid},
			"below itself":   {"c", AccountUpdate{Name: "See", Domain: "see.local", Parent: "d"}, fault.KindInvalid},
			"no time zone": {"c", AccountUpdate{Name: "See", Domain: "see.local", TimeZone: "Mars/Olympus"},
				fault.KindInvalid},
			"its own parent": {"c", AccountUpdate{Name: "See", Domain: "see.local", Parent: "c"}, fault.KindInvalid},
		} {
			_, err := s.UpdateAccount(t.Context(), c.id, c.u)
			wantKind(t, name, err, c.kind)
		}
	})
}

func TestAnAccountIsDeletedWithItsPurge(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		for _, name := range []string{"soon", "later"} {
			must(s.CreateAccount(t.Context(), NewAccount{ID: name, Name: name, Domain: name}))(t)
		}

		must(s.DeleteAndPurgeAccount(t.Context(), "soon", ""))(t)
		must(s.DeleteAccount(t.Context(), "later", ""))(t)

		var purged []string
		purge := NewPurge(s.Directory, DefaultAccountSettings(),
			[]Eraser{{"all", func(_ context.Context, id string) (int, error) {
				purged = append(purged, id)
				return 0, nil
			}}}, s.Directory.log)
		if err := purge.RunDue(t.Context()); err != nil || !slices.Equal(purged, []string{"soon"}) {
			t.Errorf("purged %v: %v", purged, err)
		}
	})
}

func TestAnUpdateThatKeepsTheParentKeepsTheStoredOne(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		for _, pair := range [][2]string{{"old", ""}, {"new", ""}, {"moved", "old"}} {
			must(s.CreateAccount(t.Context(),
				NewAccount{ID: pair[0], Name: pair[0], Domain: pair[0], Parent: pair[1]}))(t)
		}

		must(s.UpdateAccount(t.Context(), "moved", AccountUpdate{Name: "moved", Domain: "moved", Parent: "new"}))(t)
		updated := must(s.UpdateAccount(t.Context(), "moved",
			AccountUpdate{Name: "renamed", Domain: "moved", KeepParent: true}))(t)
		if updated.ParentID != "new" {
			t.Errorf("the parent is %q, want the one stored last", updated.ParentID)
		}
	})
}
