package identity

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// startLimited returns a node whose limits pass with the clock.
func startLimited(t testing.TB, cfg sqldb.Config, c *clock, change func(*Config)) *testService {
	limiter := NewMemoryLimiter()
	limiter.now = c.now
	config := Config{Now: c.now, Settings: DefaultSettings()}
	if change != nil {
		change(&config)
	}
	return startServiceOn(t, testdb.Open(t, cfg), config, limiter).demo(t)
}

func (s *testService) count(t testing.TB, table string) (n int) {
	t.Helper()
	if err := s.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// largeFilter returns a filter that is stored, another one for each n.
func largeFilter(n int) Filter {
	f := Filter{QueueIDs: []string{fmt.Sprint("queue-", n)}}
	for i := range 45 {
		f.CallIDs = append(f.CallIDs, fmt.Sprintf("%0100d", i))
	}
	return f
}

// Whatever a plain credential can repeat to get tokens ends with 429 and the time to wait, and
// goes on after it.
func TestTokensHaveARate(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startLimited(t, cfg, c, func(cfg *Config) { cfg.UserTokensPerMinute, cfg.KeyTokensPerMinute = 60, 70 })
		session := s.mustLogin(t, "alice")
		p := s.mustAuthenticate(t, session.AccessToken)
		keyText, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo", Scopes: []Scope{ScopeSubscribe}})
		if err != nil {
			t.Fatal(err)
		}

		key := must(s.AuthenticateKey(t.Context(), keyText))(t)
		refresh := session.RefreshToken
		login := func(user string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.Login(ctx, demoLogin(user))
				return err
			}
		}

		for _, way := range []struct {
			name string
			most int
			get  func(ctx context.Context) error
		}{
			{"refresh", 60, func(ctx context.Context) error {
				next, err := s.Refresh(ctx, refresh)
				if err == nil {
					refresh = next.RefreshToken
				}
				return err
			}},
			{"exchange of a session", 60, func(ctx context.Context) error {
				_, _, err := s.EventsExchange(ctx, p, "192.0.2.1", Filter{})
				return err
			}},
			{"exchange of a key", 70, func(ctx context.Context) error {
				_, _, err := s.EventsExchange(ctx, key, "192.0.2.1", Filter{})
				return err
			}},
			{"channel login", 60, func(ctx context.Context) error {
				_, _, err := s.EventsLogin(ctx, demoLogin("bob"), Filter{})
				return err
			}},
			{"login", 60, login("bob")},
		} {
			got := 0
			var refusal error
			for range 200 {
				refusal = way.get(t.Context())
				if refusal != nil {
					break
				}
				got++
			}

			if f := fault.As(refusal); got != way.most || f.Kind != fault.KindLimited || f.RetryAfter != time.Minute {
				t.Errorf("%s: %d tokens, then %v", way.name, got, refusal)
			}
		}

		if err := login("alice")(t.Context()); err != nil {
			t.Errorf("a session that is refreshed without end keeps its user out: %v", err)
		}

		c.add(tokenWindow)
		if err := login("bob")(t.Context()); err != nil {
			t.Error("after the minute:", err)
		}

		must(s.Refresh(t.Context(), refresh))(t)
	})
}

// A session is one row, however often it is refreshed, and any of its used tokens is known.
func TestASessionIsOneRow(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startLimited(t, cfg, newClock(), nil)
		first := s.mustLogin(t, "alice")
		latest := first

		for range 30 {
			latest = must(s.Refresh(t.Context(), latest.RefreshToken))(t)
		}

		if n := s.count(t, "identity_refresh_tokens"); n != 1 {
			t.Errorf("%d rows of one session", n)
		}

		_, err := s.Refresh(t.Context(), first.RefreshToken[:secretLength]+newSecret()[1:])
		wantKind(t, "a token of another length", err, fault.KindUnauthenticated)
		s.mustAuthenticate(t, latest.AccessToken)

		_, err = s.Refresh(t.Context(), first.RefreshToken)
		wantKind(t, "the first token", err, fault.KindUnauthenticated)
		_, err = s.Authenticate(t.Context(), latest.AccessToken)
		wantKind(t, "the newest access token", err, fault.KindUnauthenticated)

		if n := s.count(t, "identity_refresh_tokens"); n != 0 {
			t.Errorf("%d rows of a revoked session", n)
		}
	})
}

// Sessions that an earlier version began continue, and their used tokens stay known.
func TestSessionsOfAnEarlierVersionContinue(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startLimited(t, cfg, newClock(), nil)
		session := s.mustLogin(t, "alice")

		old, used := newSecret(), newSecret()
		for _, statement := range []string{
			`UPDATE identity_refresh_tokens SET family_hash = '', hash = '` + hashSecret(old) + `'`,
			`INSERT INTO identity_refresh_tokens (hash, family_id, user_id, expires_at, access_expires_at, used_at)
				SELECT '` + hashSecret(used) +
				`', family_id, user_id, expires_at, access_expires_at, 1 FROM identity_refresh_tokens`,
		} {
			must(s.db.ExecContext(t.Context(), statement))(t)
		}

		next := must(s.Refresh(t.Context(), old))(t)
		must(s.Refresh(t.Context(), next.RefreshToken))(t)
		_, err := s.Refresh(t.Context(), used)
		wantKind(t, "a used token", err, fault.KindUnauthenticated)
		_, err = s.Authenticate(t.Context(), session.AccessToken)
		wantKind(t, "its session", err, fault.KindUnauthenticated)
	})
}

func TestSessionsOfAUserAreBounded(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startLimited(t, cfg, c, func(cfg *Config) { cfg.SessionsPerUser = 3 })
		other := s.mustLogin(t, "bob")
		var sessions []*Session

		for range 5 {
			c.add(time.Second)
			sessions = append(sessions, s.mustLogin(t, "alice"))
		}

		if n := s.count(t, "identity_refresh_tokens"); n != 4 {
			t.Errorf("%d sessions", n)
		}

		for i, session := range sessions {
			_, err := s.Authenticate(t.Context(), session.AccessToken)
			if ended := i < 2; (err != nil) != ended {
				t.Errorf("session %d: %v", i, err)
			}
		}

		s.mustAuthenticate(t, other.AccessToken)
	})
}

// Stored filters are bounded for a user or key, and in bytes for an account; the same filter
// again is no other one, and they are free when their tokens have expired.
func TestStoredFiltersAreBounded(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startLimited(t, cfg, c, func(cfg *Config) { cfg.StoredFilters = 10 })
		var refusal error

		for n := range 12 {
			if _, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), largeFilter(n)); err != nil {
				refusal = err
			}
		}

		if f := fault.As(refusal); f.Kind != fault.KindLimited || !strings.Contains(f.Message, "auth.stored_filters") ||
			f.RetryAfter < time.Hour {
			t.Errorf("refusal: %v", refusal)
		}
		if n := s.count(t, "identity_filters"); n != 10 {
			t.Errorf("%d filters", n)
		}

		for _, user := range []string{"alice", "bob"} {
			if _, _, err := s.EventsLogin(t.Context(), demoLogin(user), largeFilter(3)); err != nil {
				t.Errorf("%s: %v", user, err)
			}
		}

		c.add(s.Directory.cfg.EventsTTL + 2*time.Minute)
		if _, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), largeFilter(20)); err != nil {
			t.Error("after the tokens:", err)
		}
	})
}

func TestStoredFiltersOfAnAccountAreBoundedInBytes(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startLimited(t, cfg, newClock(), func(cfg *Config) { cfg.Accounts.FilterBytes = 20 << 10 })
		var refusal error
		for n, user := range []string{"alice", "bob", "admin", "alice", "bob"} {
			if _, _, err := s.EventsLogin(t.Context(), demoLogin(user), largeFilter(n)); err != nil {
				refusal = err
			}
		}

		if f := fault.As(refusal); f.Kind != fault.KindLimited || !strings.Contains(f.Message, "account.filter_bytes") {
			t.Errorf("refusal: %v", refusal)
		}
		if n := s.count(t, "identity_filters"); n != 4 {
			t.Errorf("%d filters", n)
		}
	})
}

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

		if users, keys := s.count(t, "identity_users"), s.count(t, "identity_api_keys"); users != 5 || keys != 3 {
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
