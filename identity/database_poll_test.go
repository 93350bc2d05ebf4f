package identity

import (
	"database/sql"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice"
	"trunkline/internal/testservice/testdb"
)

func TestNodesSeeEachOthersChangesWithinASecond(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		a := startService(t, cfg, Config{}).demo(t)
		b := startService(t, cfg, Config{})
		b.run(t)
		aliceToken := a.mustLogin(t, "alice").AccessToken
		alice := must(b.Authenticate(t.Context(), aliceToken))(t)
		bob := must(b.Authenticate(t.Context(), a.mustLogin(t, "bob").AccessToken))(t)
		key, made, err := a.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
		if err != nil {
			t.Fatal(err)
		}

		keyed := must(b.AuthenticateKey(t.Context(), key))(t)

		fastest := time.Hour
		follows := func(what string, is func() bool) {
			t.Helper()
			begun := time.Now()
			waitFor(t, what, is)
			fastest = min(fastest, time.Since(begun))
		}

		changed := b.Changed()
		must(a.CreateAccount(t.Context(), NewAccount{ID: "sub", Name: "sub", Domain: "sub.local", Parent: "demo"}))(t)
		waitFor(t, "an account is made", func() bool { return b.Tree().Contains("demo", "sub") })

		select {
		case <-changed:
		case <-time.After(patience):
			t.Error("nobody was told")
		}

		if err := a.Logout(t.Context(), alice); err != nil {
			t.Fatal(err)
		}

		follows("a logout", func() bool { return fault.KindOf(b.CheckPrincipal(alice)) == fault.KindForbidden })
		if err := a.DeleteUser(t.Context(), "demo", "bob"); err != nil {
			t.Fatal(err)
		}

		follows("a deleted user", func() bool { return fault.KindOf(b.CheckPrincipal(bob)) == fault.KindForbidden })
		if err := a.DeleteAPIKey(t.Context(), made.ID, ""); err != nil {
			t.Fatal(err)
		}

		follows("a deleted key", func() bool { return fault.KindOf(b.CheckPrincipal(keyed)) == fault.KindForbidden })
		_, err = b.AuthenticateKey(t.Context(), key)
		wantKind(t, "the deleted key", err, fault.KindUnauthenticated)

		if err := a.deleteAnyVersion(t.Context(), "sub"); err != nil {
			t.Fatal(err)
		}

		follows("a deleted account", func() bool { return b.Tree().Path("sub") == nil })
		if fastest > time.Second { // each begins just after a poll, and a slow machine may be late sometimes
			t.Errorf("a change takes %s at best", fastest)
		}
	})
}

// A script creates a key and uses it at once, on a node that has not polled yet: Run is
// not running here.
func TestWhatANodeDoesNotKnowMakesItLook(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		b := startService(t, cfg, Config{})
		a := startService(t, cfg, Config{}).demo(t)
		key, _, err := a.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"})
		if err != nil {
			t.Fatal(err)
		}

		must(b.AuthenticateKey(t.Context(), key))(t)

		must(a.CreateAccount(t.Context(), NewAccount{ID: "new", Name: "new", Domain: "new.local"}))(t)
		must(a.CreateUser(t.Context(), NewUser{Account: "new", Username: "u", Password: password}))(t)
		c := LoginRequest{Username: "u", Password: password, Domain: "new.local"}
		must(b.Authenticate(t.Context(), must(b.Login(t.Context(), c))(t).AccessToken))(t)

		must(a.CreateAccount(t.Context(),
			NewAccount{ID: "below", Name: "below", Domain: "below.local", Parent: "new"}))(t)
		if _, _, err := b.EventsLogin(t.Context(), c, Filter{AccountIDs: []string{"below"}}); err != nil {
			t.Error(err)
		}
	})
}

func TestForgedKeysAndTokensDoNotHammerTheDatabase(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	before := s.changes.pollCount.Load()
	for range 50 * earlyPollsPerSecond {
		_, err := s.AuthenticateKey(t.Context(), keyPrefix+newSecret())
		wantKind(t, "forged", err, fault.KindUnauthenticated)
	}
	if polls := s.changes.pollCount.Load() - before; polls > 5*earlyPollsPerSecond {
		t.Errorf("%d polls", polls)
	}
}

func TestNodesThatStartAtOnceAgreeOnOneKeyAndOneSeed(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		nodes := make([]*testService, 4)
		var mu sync.Mutex
		seeds := 0
		var group sync.WaitGroup

		for i := range nodes {
			group.Go(func() {
				nodes[i] = startService(t, cfg, Config{})
				seeded, err := nodes[i].SeedDemo(t.Context(), password)
				if err != nil {
					t.Error(err)
				}

				mu.Lock()
				defer mu.Unlock()

				if seeded {
					seeds++
				}
			})
		}

		group.Wait()
		if t.Failed() {
			return
		}

		for _, n := range nodes[1:] {
			if string(n.JWKS()) != string(nodes[0].JWKS()) {
				t.Errorf("keys %s and %s", n.JWKS(), nodes[0].JWKS())
			}
		}

		if seeds != 1 || len(must(nodes[0].ListAccounts(t.Context()))(t)) != 1 {
			t.Errorf("%d nodes seeded", seeds)
		}
	})
}

func TestManyChangesAtOnceAllHappen(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		nodes := []*testService{startService(t, cfg, Config{}).demo(t), startService(t, cfg, Config{})}
		var group sync.WaitGroup
		for i := range 30 {
			group.Go(func() {
				if _, _, err := nodes[i%2].CreateAPIKey(t.Context(), NewAPIKey{Account: "demo"}); err != nil {
					t.Error(err)
				}
			})
		}

		group.Wait()
		if keys := must(nodes[0].ListAPIKeys(t.Context(), "demo"))(t); len(keys) != 30 {
			t.Errorf("%d keys", len(keys))
		}
	})
}

func TestMemoryServesWhileTheDatabaseIsAwayAndFollowsOnItsReturn(t *testing.T) {
	server := testservice.OwnPostgres(t)
	cfg := sqldb.Config{URL: server.URL}
	s := startService(t, cfg, Config{}).demo(t)
	s.run(t)
	token := s.mustLogin(t, "alice").AccessToken
	server.Kill(t)
	waitFor(t, "the log says that it is away", func() bool {
		return strings.Contains(s.logged.String(), "following database changes failed")
	})
	s.mustAuthenticate(t, token)
	_, err := s.Login(t.Context(), demoLogin("alice"))
	wantKind(t, "login", err, fault.KindUnavailable)
	_, err = s.CreateAccount(t.Context(), NewAccount{Name: "x", Domain: "x.local"})
	wantKind(t, "a change", err, fault.KindUnavailable)
	_, err = s.AuthenticateKey(t.Context(), keyPrefix+newSecret())
	wantKind(t, "an unknown key", err, fault.KindUnauthenticated)

	server.Start(t)
	must(startService(t, cfg, Config{}).CreateAccount(t.Context(),
		NewAccount{ID: "x", Name: "x", Domain: "x.local"}))(t)

	for end := time.Now().Add(2*maxPollInterval +
		patience); s.Tree().Path("x") == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the change was never seen")
		}
	}

	if n := strings.Count(s.logged.String(), "following database changes failed"); n != 1 {
		t.Errorf("%d lines about one absence", n)
	}
}

func TestADatabaseFromABackupIsFollowed(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	for range 3 {
		if err := s.Logout(t.Context(), s.mustAuthenticate(t, s.mustLogin(t, "alice").AccessToken)); err != nil {
			t.Fatal(err)
		}
	}

	err := s.db.Tx(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `UPDATE identity_revision SET directory = 1, revocations = 2`)
		if err != nil {
			return err
		}

		_, err = tx.ExecContext(t.Context(),
			`INSERT INTO identity_revocations (id, expires_at, revision) VALUES ('restored', 9000000000000, 2)`)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := s.changes.poll(t.Context()); err != nil || !s.revocations.has("restored") {
		t.Errorf("not followed: %v", err)
	}
}
