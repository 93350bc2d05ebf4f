package identity

import (
	"context"
	"database/sql"
	"fmt"
	"runtime"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// insertAccounts stores accounts without the rules of CreateAccount, as earlier versions
// did, and raises the revision.
func (s *testService) insertAccounts(t testing.TB, accounts []Account) {
	t.Helper()
	err := s.db.Tx(t.Context(), func(tx *sql.Tx) error {
		for _, a := range accounts {
			_, err := tx.ExecContext(t.Context(),
				`INSERT INTO identity_accounts (id, name, domain, parent_id, time_zone, created_at) VALUES ($1, $1, $1, $2, '', 1)`,
				a.ID, sql.NullString{String: a.ParentID, Valid: a.ParentID != ""})
			if err != nil {
				return err
			}
		}

		_, err := tx.ExecContext(t.Context(), `UPDATE identity_revision SET directory = directory + 1`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

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

func TestAnImpossibleTreeIsLeftOut(t *testing.T) {
	tree, orphans := buildTree(
		[]Account{{ID: "a", ParentID: "b"}, {ID: "b", ParentID: "c"}, {ID: "c", ParentID: "a"},
			{ID: "d", ParentID: "c"}, {ID: "e", ParentID: "gone"}, {ID: "ok"}, {ID: "below", ParentID: "ok"}})
	if fmt.Sprint(orphans) != "[a b c d e]" || len(tree.Accounts()) != 2 || tree.nodesByID["ok"].below != 1 {
		t.Errorf("orphans %v of %v", orphans, tree.Accounts())
	}
}

// BenchmarkReadDirectory reads and builds a hundred thousand accounts, wide or in deep chains.
// Goal: at most a second each.
func BenchmarkReadDirectory(b *testing.B) {
	for name, accounts := range map[string][]Account{"wide": manyAccounts(100_000, 16),
		"deep": manyAccounts(100_000, 5000)} {
		b.Run(name, func(b *testing.B) {
			s := startService(b, testdb.SQLite(b), Config{})
			s.insertAccounts(b, accounts)
			for b.Loop() {
				if err := s.Directory.reload(b.Context()); err != nil {
					b.Fatal(err)
				}
			}

			if len(s.Tree().nodesByID) != len(accounts) {
				b.Errorf("%d accounts", len(s.Tree().nodesByID))
			}
		})
	}
}

func manyAccounts(n, depth int) (accounts []Account) {
	for i := range n / depth {
		accounts = append(accounts, chain(fmt.Sprintf("c%d-", i), depth)...)
	}
	return accounts
}

// A tenant that makes the tree unreadable does not stop revocation: deleted users and keys
// are refused although the accounts cannot be read, and after maxStaleness everything is.
func TestWhatCannotBeCheckedIsRefused(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	token := s.mustLogin(t, "alice").AccessToken
	admin := s.mustLogin(t, "admin").AccessToken
	key, stored, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
	if err != nil {
		t.Fatal(err)
	}

	alice, bob := s.mustAuthenticate(t, token), s.mustAuthenticate(t, admin)

	err = s.db.Tx(t.Context(), func(tx *sql.Tx) error {
		for _, statement := range []string{
			`INSERT INTO identity_revocations (id, expires_at, revision) SELECT '` + alice.UserID +
				`', 99999999999999, revocations + 1 FROM identity_revision`,
			`DELETE FROM identity_api_keys WHERE id = '` + stored.ID + `'`,
			`UPDATE identity_revision SET directory = directory + 1, revocations = revocations + 1`,
			`ALTER TABLE identity_accounts RENAME TO unreadable`,
		} {
			if _, err := tx.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := s.changes.poll(t.Context()); err == nil {
		t.Fatal("the accounts were read")
	}

	_, err = s.Authenticate(t.Context(), token)
	wantKind(t, "a deleted user's token", err, fault.KindUnauthenticated)
	_, err = s.AuthenticateKey(t.Context(), key)
	wantKind(t, "a deleted key", err, fault.KindUnauthenticated)
	s.mustAuthenticate(t, admin)

	past := time.Now().Add(-maxStaleness - time.Second).UnixNano()
	s.changes.freshness.currentAt.Store(past)
	s.changes.freshness.behindSince.Store(past)
	_, err = s.Authenticate(t.Context(), admin)
	wantKind(t, "a token", err, fault.KindUnavailable)
	_, err = s.AuthenticateKey(t.Context(), key)
	wantKind(t, "a key", err, fault.KindUnavailable)
	wantKind(t, "an open socket", s.CheckPrincipal(bob), fault.KindUnavailable)

	if _, err := s.db.ExecContext(t.Context(), `ALTER TABLE unreadable RENAME TO identity_accounts`); err != nil {
		t.Fatal(err)
	}
	if err := s.changes.poll(t.Context()); err != nil {
		t.Fatal(err)
	}

	s.mustAuthenticate(t, admin)
	if s.changes.freshness.age() > maxStaleness || s.CheckPrincipal(bob) != nil {
		t.Error("it is not fresh again")
	}
}

// A process that does not poll, as a management command, reads before it refuses.
func TestStaleMemoryIsReadAgainWhereNothingPolls(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	token := s.mustLogin(t, "alice").AccessToken
	past := time.Now().Add(-time.Hour).UnixNano()
	s.changes.freshness.currentAt.Store(past)
	s.changes.freshness.polledAt.Store(past)
	s.mustAuthenticate(t, token)
}
