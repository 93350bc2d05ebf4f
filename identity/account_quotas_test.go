package identity

import (
	"fmt"
	"strings"
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// Users and API keys of an account are bounded by its quotas; another account's are not concerned,
// and one that is deleted makes room.
func TestUsersAndKeysOfAnAccountAreBounded(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startLimited(t, cfg, newClock(), func(cfg *Config) {
			cfg.Accounts = DefaultAccountSettings()
			cfg.Accounts.Users, cfg.Accounts.APIKeys = 4, 2
		})

		must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other.example"}))(t)
		user := func(account string, i int) error {
			_, err := s.CreateUser(t.Context(),
				NewUser{Account: account, Username: fmt.Sprint("user-", i), Password: "blue-horse 7 staple"})
			return err
		}

		key := func(account string) error {
			_, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: account, Scopes: []Scope{ScopeIngest}})
			return err
		}

		refused := func(what, setting string, create func() error) {
			t.Helper()
			err := create()
			for i := 0; i < 10 && err == nil; i++ {
				err = create()
			}

			if f := fault.As(err); f.Kind != fault.KindConflict || !strings.Contains(f.Message, setting) {
				t.Errorf("%s: %v", what, err)
			}
		}

		i := 0
		refused("users", "account.users", func() error { i++; return user("demo", i) })
		refused("keys", "account.api_keys", func() error { return key("demo") })

		for what, err := range map[string]error{"a user": user("other", 1), "a key": key("other")} {
			if err != nil {
				t.Errorf("%s of another account: %v", what, err)
			}
		}

		users, keys := s.countRows(t, "identity_users"), s.countRows(t, "identity_api_keys")
		if users != 5 || keys != 3 {
			t.Errorf("%d users and %d keys", users, keys)
		}

		listed := must(s.ListAPIKeys(t.Context(), "demo"))(t)
		if err := s.DeleteAPIKey(t.Context(), listed[0].ID, ""); err != nil {
			t.Fatal(err)
		}
		if err := key("demo"); err != nil {
			t.Error("in place of a deleted key:", err)
		}
	})
}
