package identity

import (
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func TestRefreshGivesANewPairOnce(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		first := s.mustLogin(t, "alice")
		second := must(s.Refresh(t.Context(), first.RefreshToken))(t)
		if !reflect.DeepEqual(second.User, first.User) || second.RefreshToken == first.RefreshToken ||
			second.ExpiresIn != time.Hour {
			t.Errorf("second session %+v", second)
		}

		a, b := s.mustAuthenticate(t, first.AccessToken), s.mustAuthenticate(t, second.AccessToken)
		if a.FamilyID != b.FamilyID || a.TokenID == b.TokenID {
			t.Errorf("family %q became %q", a.FamilyID, b.FamilyID)
		}

		must(s.Refresh(t.Context(), second.RefreshToken))(t)
	})
}

func TestAUsedRefreshTokenRevokesItsFamilyAndNoOther(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{}).demo(t)
		other := s.mustLogin(t, "alice")
		first := s.mustLogin(t, "alice")
		second := must(s.Refresh(t.Context(), first.RefreshToken))(t)
		_, err := s.Refresh(t.Context(), first.RefreshToken)
		wantKind(t, "the used token", err, fault.KindUnauthenticated)
		_, err = s.Refresh(t.Context(), second.RefreshToken)
		wantKind(t, "its descendant", err, fault.KindUnauthenticated)

		for name, token := range map[string]string{"first": first.AccessToken, "second": second.AccessToken} {
			_, err = s.Authenticate(t.Context(), token)
			wantKind(t, name+" access token", err, fault.KindUnauthenticated)
		}

		s.mustAuthenticate(t, other.AccessToken)
		must(s.Refresh(t.Context(), other.RefreshToken))(t)
		if !strings.Contains(s.logged.String(), "refresh token reused") ||
			strings.Contains(s.logged.String(), first.RefreshToken) {
			t.Errorf("logged %s", s.logged)
		}
	})
}

func TestOfManyRefreshesAtOnceExactlyOneWins(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		nodes := []*testService{startService(t, cfg, Config{}).demo(t), startService(t, cfg, Config{})}
		for range 5 {
			first := nodes[0].mustLogin(t, "alice")
			var mu sync.Mutex
			kinds := map[fault.Kind]int{}
			var group sync.WaitGroup

			for i := range 6 {
				group.Go(func() {
					_, err := nodes[i%2].Refresh(t.Context(), first.RefreshToken)
					mu.Lock()
					defer mu.Unlock()
					kinds[fault.KindOf(err)]++
				})
			}

			group.Wait()
			if kinds[""] != 1 || kinds[fault.KindUnauthenticated] != 5 {
				t.Errorf("got %v", kinds)
			}
		}
	})
}

func TestRefreshRefuses(t *testing.T) {
	c := newClock()
	s := startService(t, testdb.SQLite(t), Config{Now: c.now, Settings: withLifetimes(time.Hour, 2*time.Hour)}).demo(t)
	expired := s.mustLogin(t, "alice").RefreshToken
	c.add(2 * time.Hour)
	loggedOut := s.mustLogin(t, "alice")
	if err := s.Logout(t.Context(), s.mustAuthenticate(t, loggedOut.AccessToken)); err != nil {
		t.Fatal(err)
	}

	gone := s.mustLogin(t, "bob")
	if err := s.DeleteUser(t.Context(), "demo", "bob"); err != nil {
		t.Fatal(err)
	}

	for name, token := range map[string]string{
		"nothing": "", "an access token": loggedOut.AccessToken, "an unknown one": newSecret(),
		"SQL": "' OR '1'='1", "a zero byte": "\x00", "an expired one": expired,
		"of a logged out session": loggedOut.RefreshToken, "of a deleted user": gone.RefreshToken,
	} {
		_, err := s.Refresh(t.Context(), token)
		wantKind(t, name, err, fault.KindUnauthenticated)
	}
}

func TestSecretsAreNeitherStoredNorLogged(t *testing.T) {
	cfg := testdb.SQLite(t)
	s := startService(t, cfg, Config{}).demo(t)
	session := s.mustLogin(t, "alice")
	session = must(s.Refresh(t.Context(), session.RefreshToken))(t)
	key, _, err := s.CreateAPIKey(t.Context(), NewAPIKey{Account: "demo", Name: "k"})
	if err != nil {
		t.Fatal(err)
	}

	rows := must(s.db.QueryContext(t.Context(), `SELECT hash FROM identity_refresh_tokens UNION ALL
		SELECT hash FROM identity_api_keys UNION ALL SELECT password FROM identity_users`))(t)
	stored := must(sqldb.Collect(rows, nil, "reading", func(scan sqldb.ScanFunc) (string, error) {
		var text string
		err := scan(&text)
		return text, err
	}))(t)

	everything := strings.Join(stored, "\n") + s.logged.String()
	for name, secret := range map[string]string{
		"password": password, "refresh token": session.RefreshToken, "access token": session.AccessToken, "key": key,
	} {
		if strings.Contains(everything, secret) {
			t.Errorf("the %s is there", name)
		}
	}

	if len(stored) != 1+1+3 || !strings.Contains(everything, "$argon2id$v=19$m=8,t=1,p=1$") {
		t.Errorf("%d rows: %s", len(stored), everything)
	}
}

func TestMaintenanceKeepsWhatStillMatters(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startService(t, cfg, Config{Now: c.now}).demo(t)
		session := s.mustLogin(t, "alice")
		p := s.mustAuthenticate(t, session.AccessToken)
		s.mustLogin(t, "bob")

		if err := s.Logout(t.Context(), p); err != nil {
			t.Fatal(err)
		}

		c.add(59 * time.Minute)
		if err := s.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}

		wantKind(t, "before its expiry", s.CheckPrincipal(p), fault.KindForbidden)
		if n := s.countRows(t, "identity_revocations"); n != 1 {
			t.Errorf("%d revocations", n)
		}

		c.add(time.Minute + clockMargin + time.Second)
		if err := s.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.countRows(t, "identity_revocations"); n != 0 || s.revocations.has(p.FamilyID) {
			t.Errorf("%d revocations after every token has expired", n)
		}
		if n := s.countRows(t, "identity_refresh_tokens"); n != 1 {
			t.Errorf("%d refresh tokens, bob's is alive", n)
		}

		c.add(31 * 24 * time.Hour)
		if err := s.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := s.countRows(t, "identity_refresh_tokens"); n != 0 {
			t.Errorf("%d refresh tokens after a month", n)
		}
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

		if n := s.countRows(t, "identity_refresh_tokens"); n != 1 {
			t.Errorf("%d rows of one session", n)
		}

		_, err := s.Refresh(t.Context(), first.RefreshToken[:secretLength]+newSecret()[1:])
		wantKind(t, "a token of another length", err, fault.KindUnauthenticated)
		s.mustAuthenticate(t, latest.AccessToken)

		_, err = s.Refresh(t.Context(), first.RefreshToken)
		wantKind(t, "the first token", err, fault.KindUnauthenticated)
		_, err = s.Authenticate(t.Context(), latest.AccessToken)
		wantKind(t, "the newest access token", err, fault.KindUnauthenticated)

		if n := s.countRows(t, "identity_refresh_tokens"); n != 0 {
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

		if n := s.countRows(t, "identity_refresh_tokens"); n != 4 {
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
