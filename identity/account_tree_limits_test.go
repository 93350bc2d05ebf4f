package identity

import (
	"fmt"
	"runtime"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// chain returns n accounts, each below the one before it.
func chain(prefix string, n int) []Account {
	accounts := make([]Account, n)
	for i := range accounts {
		accounts[i].ID = fmt.Sprintf("%s%06d", prefix, i)
		if i > 0 {
			accounts[i].ParentID = accounts[i-1].ID
		}
	}
	return accounts
}

func TestAccountsAreNestedToALimit(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		create := func(id, parent string) error {
			_, err := s.CreateAccount(t.Context(), NewAccount{ID: id, Name: id, Domain: id, Parent: parent})
			return err
		}

		parent := ""
		for i := range MaxDepth {
			id := fmt.Sprint("level", i)
			if err := create(id, parent); err != nil {
				t.Fatal(id, err)
			}
			parent = id
		}

		wantKind(t, "one deeper", create("deeper", parent), fault.KindInvalid)

		if err := create("small", ""); err != nil {
			t.Fatal(err)
		}
		if err := create("child", "small"); err != nil {
			t.Fatal(err)
		}

		move := func(id, parent string) error {
			_, err := s.UpdateAccount(t.Context(), id, AccountUpdate{Name: id, Domain: id, Parent: parent})
			return err
		}

		wantKind(t, "a move too deep", move("child", "level15"), fault.KindInvalid)
		wantKind(t, "a move whose child is too deep", move("small", "level14"), fault.KindInvalid)
		if err := move("small", "level13"); err != nil {
			t.Error(err)
		}
	})
}

func TestATenantHasAQuotaOfAccounts(t *testing.T) {
	s := startService(t, testdb.SQLite(t),
		Config{Settings: func() Settings { d := DefaultSettings(); d.AccountsPerTenant = 3; return d }()})
	create := func(id, parent string) error {
		_, err := s.CreateAccount(t.Context(), NewAccount{ID: id, Name: id, Domain: id, Parent: parent})
		return err
	}

	for _, pair := range [][2]string{{"root", ""}, {"tenant", "root"}, {"a", "tenant"}, {"b", "a"}, {"c", "b"},
		{"other", "root"}} {
		if err := create(pair[0], pair[1]); err != nil {
			t.Fatal(pair, err)
		}
	}

	for _, parent := range []string{"tenant", "a", "b", "c"} {
		wantKind(t, "below "+parent, create("more", parent), fault.KindConflict)
	}

	_, err := s.UpdateAccount(t.Context(), "other", AccountUpdate{Name: "other", Domain: "other", Parent: "c"})
	wantKind(t, "a move", err, fault.KindConflict)
	if _, err := s.UpdateAccount(t.Context(), "c",
		AccountUpdate{Name: "c", Domain: "c", Parent: "tenant"}); err != nil {
		t.Error("a move within the tenant:", err)
	}
	if err := create("x", "other"); err != nil {
		t.Error("another tenant:", err)
	}

	for i := range 3*rootFactor - 6 {
		if err := create(fmt.Sprint("r", i), "root"); err != nil {
			t.Fatal(i, err)
		}
	}

	wantKind(t, "a root that is full", create("last", "root"), fault.KindConflict)
}

// Two nodes create an account at once: each knows the tree without the other's.
func TestAQuotaOfAccountsHoldsOnTwoNodesAtOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		settings := DefaultSettings()
		settings.AccountsPerTenant = 3
		a := startService(t, cfg, Config{Settings: settings})
		create := func(s *testService, id, parent string) error {
			_, err := s.CreateAccount(t.Context(), NewAccount{ID: id, Name: id, Domain: id, Parent: parent})
			return err
		}

		for _, pair := range [][2]string{{"root", ""}, {"tenant", "root"}, {"one", "tenant"}, {"two", "tenant"}} {
			if err := create(a, pair[0], pair[1]); err != nil {
				t.Fatal(pair, err)
			}
		}

		// b has read the tree, and nothing polls: it does not see the third.
		b := startService(t, cfg, Config{Settings: settings})
		if err := create(a, "three", "tenant"); err != nil {
			t.Fatal(err)
		}
		wantKind(t, "the fourth, on a node that knows two", create(b, "four", "tenant"), fault.KindConflict)
	})
}

// A tree that is deeper than the limit loads, is answered from, and can shrink.
func TestDeeperTreesStillLoad(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	const depth = 6000
	accounts := chain("n", depth)
	s.insertAccounts(t, accounts)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)

	if err := s.changes.poll(t.Context()); err != nil {
		t.Fatal(err)
	}

	runtime.ReadMemStats(&after)

	first, last := accounts[0].ID, accounts[depth-1].ID
	if path := s.Tree().Path(last); len(path) != depth || path[depth-1] != first || !s.Tree().Contains(first, last) ||
		s.Tree().Contains(last, first) {
		t.Errorf("path of %d accounts", len(path))
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d MB allocated for %d accounts", got>>20, depth)
	}

	_, err := s.CreateAccount(t.Context(), NewAccount{ID: "more", Name: "more", Domain: "more", Parent: last})
	wantKind(t, "deeper", err, fault.KindInvalid)
	if _, err := s.UpdateAccount(t.Context(), last,
		AccountUpdate{Name: "renamed", Domain: "renamed", Parent: accounts[depth-2].ID}); err != nil {
		t.Error("a new name:", err)
	}
	if _, err := s.UpdateAccount(t.Context(), last,
		AccountUpdate{Name: "renamed", Domain: "renamed", Parent: first}); err != nil {
		t.Error("a move up:", err)
	}
}
