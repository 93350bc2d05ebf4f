package identity

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"trunkline/audit"
	"trunkline/internal/fault"
	"trunkline/internal/report"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// entries waits for the recorded entries and returns those of the account, oldest first,
// as "action actor target outcome".
func (s *testService) entries(t testing.TB, account string) (lines []string) {
	t.Helper()
	must(0, s.auditLog.ChainPending(t.Context()))(t)
	page := must(s.auditLog.List(t.Context(),
		audit.Filter{AccountID: account, End: time.Now().Add(time.Hour).Unix(), PageSize: report.MaxPage}))(t)
	for _, e := range slices.Backward(page.Data) {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", e.Action, e.Actor, e.Target, e.Outcome))
	}
	slices.Sort(lines) // entries of one millisecond have no order
	return lines
}

// awaitEntries waits until the account has n entries of the action, which are stored
// asynchronously.
func (s *testService) awaitEntries(t testing.TB, account string, action audit.Action, n int) []string {
	t.Helper()
	var found []string
	waitFor(t, fmt.Sprintf("%d entries %s", n, action), func() bool {
		found = nil
		for _, line := range s.entries(t, account) {
			if strings.HasPrefix(line, string(action)+" ") {
				found = append(found, line)
			}
		}

		return len(found) == n
	})

	return found
}

func TestEveryChangeIsAudited(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{})
		ctx := audit.WithCaller(t.Context(), audit.Caller{Actor: "user:admin", Address: "192.0.2.9"})
		must(s.CreateAccount(ctx, NewAccount{ID: "a", Name: "a", Domain: "a"}))(t)
		must(s.CreateAccount(ctx, NewAccount{ID: "below", Name: "below", Domain: "below", Parent: "a"}))(t)
		user := must(s.CreateUser(ctx, NewUser{Account: "below", Username: "u", Password: password}))(t)
		_, key, err := s.CreateAPIKey(ctx, NewAPIKey{Account: "below"})
		if err != nil {
			t.Fatal(err)
		}

		for _, err := range []error{
			s.SetClickToCallID(ctx, user.ID, "x"), s.DeleteAPIKey(ctx, key.ID, ""),
			s.DeleteUser(ctx, "below", "u"), s.deleteAnyVersion(ctx, "below"),
		} {
			if err != nil {
				t.Error(err)
			}
		}

		wantKind(t, "again", s.deleteAnyVersion(ctx, "below"), fault.KindNotFound)
		want := []string{
			"account.create user:admin account:a ok",
			"account.create user:admin account:below ok", "account.delete user:admin account:below ok",
		}
		if got := s.entries(t, "a"); !slices.Equal(got, want) {
			t.Errorf("a has %q, want %q", got, want)
		}

		want = []string{
			"apikey.create user:admin apikey:" + key.ID + " ok", "apikey.delete user:admin apikey:" + key.ID + " ok",
			"user.create user:admin user:" + user.ID + " ok", "user.delete user:admin user:" + user.ID + " ok",
			"user.update user:admin user:" + user.ID + " ok",
		}
		if got := s.entries(t, "below"); !slices.Equal(got, want) {
			t.Errorf("below has %q, want %q", got, want)
		}
		if n := strings.Count(s.logged.String(), "msg=audit "); n != 8 {
			t.Errorf("%d lines: %s", n, s.logged)
		}
	})
}

func TestEveryLoginIsAudited(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{}).demo(t)
		session := s.mustLogin(t, "alice")
		alice := session.User.ID

		if _, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Logout(t.Context(), s.mustAuthenticate(t, session.AccessToken)); err != nil {
			t.Fatal(err)
		}

		wrong := demoLogin("alice")
		wrong.Password = "a wrong password"

		unknown := demoLogin("my secret password") // typed into the wrong field
		for _, c := range []LoginRequest{wrong, unknown} {
			_, err := s.Login(t.Context(), c)
			wantKind(t, c.Username, err, fault.KindUnauthenticated)
			_, _, err = s.EventsLogin(t.Context(), c, Filter{})
			wantKind(t, c.Username, err, fault.KindUnauthenticated)
		}

		elsewhere := unknown
		elsewhere.Domain = "nowhere"
		_, err := s.Login(t.Context(), elsewhere)
		wantKind(t, "no such domain", err, fault.KindUnauthenticated)

		got := append(s.awaitEntries(t, "demo", audit.Login, 2), s.awaitEntries(t, "demo", audit.LoginFailed, 4)...)
		got = append(got, s.awaitEntries(t, "demo", audit.Logout, 1)...)
		got = append(got, s.awaitEntries(t, "", audit.LoginFailed, 1)...)
		want := []string{
			"login user:" + alice + " api ok", "login user:" + alice + " events ok",
			"login_failed  api unknown_user", "login_failed  events unknown_user",
			"login_failed user:" + alice + " api wrong_password",
			"login_failed user:" + alice + " events wrong_password",
			"logout user:" + alice + " api ok", "login_failed  api unknown_user",
		}
		if !slices.Equal(got, want) {
			t.Errorf("recorded %q, want %q", got, want)
		}
		if log := s.logged.String(); strings.Contains(log, "secret") || strings.Contains(log, "password ") ||
			strings.Count(log, "address=192.0.2.1 action=login_failed ") != 5 {
			t.Errorf("logged %s", log)
		}
	})
}

func TestALockedLoginIsAuditedOnceAMinute(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	wrong := demoLogin("alice")
	wrong.Password = "a wrong password"
	for range failuresPerUser + 20 {
		_, _ = s.Login(t.Context(), wrong)
	}
	s.awaitEntries(t, "demo", audit.LoginFailed, failuresPerUser)
	s.awaitEntries(t, "demo", audit.LoginLocked, 1)
}

func TestALoginThatCannotBeAuditedIsRefused(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{}).demo(t)
		if _, err := s.db.ExecContext(t.Context(), `DROP TABLE audit_pending`); err != nil {
			t.Fatal(err)
		}
		if session, err := s.Login(t.Context(), demoLogin("alice")); err == nil {
			t.Errorf("logged in: %v", session.User)
		}
		if _, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{}); err == nil {
			t.Error("logged in to the channel")
		}
		if _, err := s.CreateUser(context.Background(),
			NewUser{Account: "demo", Username: "new", Password: password}); err == nil {
			t.Error("made a user")
		}

		if users := must(s.ListUsers(t.Context(), "demo"))(t); len(users) != 3 {
			t.Errorf("%d users", len(users))
		}

		wrong := demoLogin("alice")
		wrong.Password = "a wrong password"
		_, err := s.Login(t.Context(), wrong)
		wantKind(t, "a wrong password", err, fault.KindUnauthenticated)
	})
}
