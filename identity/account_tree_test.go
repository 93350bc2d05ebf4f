package identity

import (
	"fmt"
	"slices"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestAccountsFormATree(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		root := must(s.CreateAccount(t.Context(), NewAccount{Name: "Röot", Domain: "Root.Local"}))(t)
		if len(root.ID) != 32 || root.Domain != "root.local" {
			t.Errorf("root %+v", root)
		}

		mid := must(s.CreateAccount(t.Context(),
			NewAccount{ID: "mid", Name: "Mid", Domain: "mid.local", Parent: "ROOT.local"}))(t)
		leaf := must(s.CreateAccount(t.Context(),
			NewAccount{ID: "leaf", Name: "Leaf", Domain: "leaf.local", Parent: "Mid"}))(t)
		other := must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "Other", Domain: "other.local"}))(t)
		tree := s.Tree()
		if got := tree.Path("leaf"); !slices.Equal(got, []string{"leaf", "mid", root.ID}) {
			t.Errorf("path %v", got)
		}

		for _, pair := range []struct {
			root, id string
			want     bool
		}{
			{root.ID, "leaf", true}, {"mid", "leaf", true}, {"leaf", "leaf", true}, {"leaf", "mid", false},
			{"other", "leaf", false}, {root.ID, "nowhere", false}, {"nowhere", "nowhere", false}, {"", "", false},
		} {
			if tree.Contains(pair.root, pair.id) != pair.want {
				t.Errorf("Contains(%q, %q) is not %v", pair.root, pair.id, pair.want)
			}
		}

		for _, ref := range []string{"leaf", "Leaf", "leaf.local", "LEAF.LOCAL"} {
			if got, ok := tree.Resolve(ref); !ok || got != leaf {
				t.Errorf("%q resolves to %+v", ref, got)
			}
		}

		all := must(s.ListAccounts(t.Context()))(t)
		if len(all) != 4 || !slices.Contains(all, mid) || !slices.Contains(all, other) ||
			!slices.Equal(all, tree.Accounts()) {
			t.Errorf("accounts %+v", all)
		}

		wantKind(t, "an account with children", s.deleteAnyVersion(t.Context(), "Mid"), fault.KindConflict)
		for _, ref := range []string{"leaf.local", "Mid"} {
			if err := s.deleteAnyVersion(t.Context(), ref); err != nil {
				t.Error(err)
			}
		}

		wantKind(t, "again", s.deleteAnyVersion(t.Context(), "mid"), fault.KindNotFound)
	})
}

func TestPathAllocatesNothing(t *testing.T) {
	tree, _ := buildTree([]Account{{ID: "a"}, {ID: "b", ParentID: "a"}})
	allocs := testing.AllocsPerRun(100, func() {
		var path [MaxDepth]string
		if len(tree.AppendPath(path[:0], "b")) != 2 || !tree.Contains("a", "b") {
			t.Error("wrong path")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestATreeLeavesOutRingsAndOrphans(t *testing.T) {
	tree, stray := buildTree([]Account{
		{ID: "a"}, {ID: "b", ParentID: "c"}, {ID: "c", ParentID: "b"}, {ID: "d", ParentID: "d"},
		{ID: "e", ParentID: "nowhere"}, {ID: "f", ParentID: "b"}, {ID: "g", ParentID: "a"},
	})
	if !slices.Equal(stray, []string{"b", "c", "d", "e", "f"}) || len(tree.Accounts()) != 2 {
		t.Errorf("stray %v", stray)
	}
}

func TestAnAccountsRefsAreItsOwn(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{})
		must(s.CreateAccount(t.Context(), NewAccount{ID: "a", Name: "b", Domain: "c.local"}))(t)
		for name, n := range map[string]NewAccount{
			"id":             {ID: "a", Name: "x", Domain: "x.local"},
			"name":           {ID: "x", Name: "b", Domain: "x.local"},
			"domain":         {ID: "x", Name: "x", Domain: "C.Local"},
			"name as id":     {ID: "b", Name: "x", Domain: "x.local"},
			"domain as name": {ID: "x", Name: "C.LOCAL", Domain: "x.local"},
			"id as domain":   {ID: "x", Name: "x", Domain: "A"},
		} {
			_, err := s.CreateAccount(t.Context(), n)
			wantKind(t, name, err, fault.KindConflict)
		}

		must(s.CreateAccount(t.Context(), NewAccount{ID: "same", Name: "same", Domain: "same"}))(t)
	})
}

func TestAnImpossibleTreeIsLeftOut(t *testing.T) {
	tree, orphans := buildTree(
		[]Account{{ID: "a", ParentID: "b"}, {ID: "b", ParentID: "c"}, {ID: "c", ParentID: "a"},
			{ID: "d", ParentID: "c"}, {ID: "e", ParentID: "gone"}, {ID: "ok"}, {ID: "below", ParentID: "ok"}})
	if fmt.Sprint(orphans) != "[a b c d e]" || len(tree.Accounts()) != 2 || tree.nodesByID["ok"].below != 1 {
		t.Errorf("orphans %v of %v", orphans, tree.Accounts())
	}
}

// Where several tenants are, no account stands for domains that are none: the realm of a
// phone's challenge would name it.
func TestOnlyOneRootStandsForUnknownDomains(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	if _, ok := s.Tree().OnlyRoot(); ok {
		t.Error("a root without accounts")
	}

	s.demo(t)
	must(s.CreateAccount(t.Context(),
		NewAccount{ID: "below", Name: "below", Domain: "below.demo.local", Parent: "demo"}))(t)

	if root, ok := s.Tree().OnlyRoot(); !ok || root.ID != "demo" {
		t.Errorf("the only root is %v", root)
	}

	must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other.example"}))(t)
	if root, ok := s.Tree().OnlyRoot(); ok {
		t.Errorf("of two roots %v", root)
	}
}
