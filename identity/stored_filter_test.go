package identity

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// TestLongFiltersAreStoredAndTokensStayShort logs in with the maximum number of ids;
// another node must find the filter of the token.
func TestLongFiltersAreStoredAndTokensStayShort(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		a := startService(t, cfg, Config{}).demo(t)
		b := startService(t, cfg, Config{})
		var f Filter

		for i := range maxFilterIDs {
			f.QueueIDs = append(f.QueueIDs, fmt.Sprintf("%032d", i))
			f.AgentIDs = append(f.AgentIDs, fmt.Sprintf("%d@pbx.example.com", i))
		}

		token, _, err := a.EventsLogin(t.Context(), demoLogin("alice"), f)
		if err != nil {
			t.Fatal(err)
		}

		again, _, err := b.EventsLogin(t.Context(), demoLogin("alice"), f)
		if err != nil || len(token) > 2<<10 {
			t.Fatalf("a token of %d bytes, the same filter again: %v", len(token), err)
		}

		for _, s := range []*testService{a, b} {
			for _, token := range []string{token, again} {
				p, err := s.Authenticate(t.Context(), token)
				if err != nil || !slices.Equal(p.QueueIDs, f.QueueIDs) || !slices.Equal(p.AgentIDs, f.AgentIDs) {
					t.Fatalf("%v, %d queues, %d agents", err, len(p.QueueIDs), len(p.AgentIDs))
				}
			}
		}

		f.QueueIDs = append(f.QueueIDs, "one more")
		if _, _, err := a.EventsLogin(t.Context(), demoLogin("alice"), f); fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("%d ids: %v", len(f.QueueIDs), err)
		}
	})
}

// A user cannot fill the database with large filters.
func TestStoredFiltersHaveAMaximumSize(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	var f Filter
	for i := range maxFilterIDs {
		f.QueueIDs = append(f.QueueIDs, fmt.Sprintf("%0100d", i))
	}
	_, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), f)
	wantKind(t, "a filter of 100 KB", err, fault.KindInvalid)
}

func TestStoredFiltersAreDeletedAfterTheirTokens(t *testing.T) {
	now := time.Now()
	s := startService(t, testdb.SQLite(t), Config{Now: func() time.Time { return now }}).demo(t)
	f := Filter{CallIDs: []string{strings.Repeat("c", MaxFilterID)}}

	for i := range 20 {
		f.CallIDs = append(f.CallIDs, fmt.Sprint(strings.Repeat("c", 200), i))
	}

	if _, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), f); err != nil {
		t.Fatal(err)
	}

	stored := func() (n int) {
		if err := s.db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM identity_filters`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	now = now.Add(24 * time.Hour)
	if err := s.deleteExpired(t.Context()); err != nil || stored() != 1 {
		t.Errorf("%v, %d filters while a token names one", err, stored())
	}

	now = now.Add(2 * time.Minute)
	if err := s.deleteExpired(t.Context()); err != nil || stored() != 0 {
		t.Errorf("%v, %d filters after the last token has expired", err, stored())
	}
}

// largeFilter returns a filter that is stored, another one for each n.
func largeFilter(n int) Filter {
	f := Filter{QueueIDs: []string{fmt.Sprint("queue-", n)}}
	for i := range 45 {
		f.CallIDs = append(f.CallIDs, fmt.Sprintf("%0100d", i))
	}
	return f
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
		if n := s.countRows(t, "identity_filters"); n != 10 {
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
		if n := s.countRows(t, "identity_filters"); n != 4 {
			t.Errorf("%d filters", n)
		}
	})
}
