package identity

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// An operator creates an account after its first records became dead letters, and sends
// these back at once, to another node.
func TestAnAccountIsFoundAtOnceAlthoughItWasUnknown(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		a := startService(t, cfg, Config{}).demo(t)
		b := startService(t, cfg, Config{})
		if _, found, err := b.FindAccount(t.Context(), "late"); found || err != nil {
			t.Fatalf("before it was created: %v, %v", found, err)
		}

		must(a.CreateAccount(t.Context(), NewAccount{ID: "late", Name: "late", Domain: "late.test", Parent: "demo"}))(t)
		if _, found, err := b.FindAccount(t.Context(), "late"); !found || err != nil {
			t.Errorf("after it was created: %v, %v", found, err)
		}
	})
}

func TestUnknownAccountsDoNotHammerTheDatabase(t *testing.T) {
	now := time.Now()
	s := startService(t, testdb.SQLite(t), Config{Now: func() time.Time { return now }}).demo(t)
	s.accountLookupLimiter.SetLimit(0) // one second's lookups for the whole test

	if _, found, err := s.FindAccount(t.Context(), "nobody"); found || err != nil {
		t.Fatal(found, err)
	}
	if err := s.db.Close(); err != nil { // a lookup fails
		t.Fatal(err)
	}

	lookups := 0
	for range 50 * accountLookupsPerSecond {
		if _, _, err := s.FindAccount(t.Context(), "nobody"); err != nil {
			lookups++
		}
	}

	if lookups != accountLookupsPerSecond {
		t.Errorf("%d lookups, want %d", lookups, accountLookupsPerSecond)
	}
}

// While a lookup reads its row, a reload may bring a newer one.
func TestALookupLeavesTheStateThatAReloadBrought(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	user := must(s.CreateUser(t.Context(),
		NewUser{Account: "demo", Username: "late", Password: password, Role: RoleAdmin}))(t)
	newer := userState{accountID: "demo", role: RoleUser, generation: 1}
	s.userStates.put(map[string]userState{user.ID: newer})

	s.lookupUser(t.Context(), user.ID)

	state, _ := s.userStates.find(user.ID)
	if state.role != newer.role || state.generation != newer.generation {
		t.Errorf("the lookup put %+v over %+v", state, newer)
	}
}

// The other node does not run Run here, and early polls are off.
func TestANewUsersTokenWorksAtOnceOnAnotherNode(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		a := startService(t, cfg, Config{}).demo(t)
		b := startService(t, cfg, Config{})
		b.changes.earlyPollLimiter.SetLimit(0)
		b.changes.earlyPollLimiter.SetBurst(0)
		must(a.CreateUser(t.Context(), NewUser{Account: "demo", Username: "carol", Password: password}))(t)
		b.mustAuthenticate(t, a.mustLogin(t, "carol").AccessToken)
	})
}

func TestTokensOfUnknownUsersDoNotHammerTheDatabase(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	s.userLookupLimiter.SetLimit(0) // one second's look-ups for the whole test
	var tokens []string

	for range 50 * userLookupsPerSecond {
		tokens = append(tokens,
			must(s.sign(User{ID: sqldb.NewID(), AccountID: "demo", Role: RoleAdmin}, AudienceAPI, time.Hour,
				claims{}))(t))
	}

	if err := s.db.Close(); err != nil { // a look-up would count an error
		t.Fatal(err)
	}

	for _, token := range tokens {
		_, err := s.Authenticate(t.Context(), token)
		wantKind(t, "forged", err, fault.KindUnauthenticated)
	}

	if n := testutil.ToFloat64(s.Directory.metrics.reloadErrors); n > userLookupsPerSecond {
		t.Errorf("%v queries for %d tokens", n, len(tokens))
	}
}
