package identity

import (
	"testing"
	"time"

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
