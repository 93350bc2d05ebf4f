package identity

import (
	"testing"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

const nextPassword = "another long password, river"

func TestAChangedPasswordEndsTheOtherSessions(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, configWithPortalPasswords(AllowPortalPassword)).demo(t)
		phone := func(password string) error {
			return s.AuthenticatePhone(t.Context(), "demo.local", "1001", "192.0.2.8", func(secret HA1) bool {
				return secret.MD5 == newHA1("1001", "demo.local", password).MD5
			})
		}

		other := startService(t, cfg, Config{})
		other.run(t)
		mine, theirs, bobs := s.mustLogin(t, "alice"), s.mustLogin(t, "alice"), s.mustLogin(t, "bob")
		channel, _, err := s.EventsLogin(t.Context(), demoLogin("alice"), Filter{})
		if err != nil {
			t.Fatal(err)
		}

		p := s.mustAuthenticate(t, mine.AccessToken)
		exchanged, _, err := s.EventsExchange(t.Context(), p, "", Filter{})
		if err != nil {
			t.Fatal(err)
		}

		open := other.mustAuthenticate(t, channel)
		if err := phone(password); err != nil {
			t.Fatal(err)
		}

		if err := s.ChangePassword(t.Context(), p, password, nextPassword, ""); err != nil {
			t.Fatal(err)
		}

		for name, token := range map[string]string{"another session's": theirs.AccessToken,
			"a channel login's": channel} {
			_, err := s.Authenticate(t.Context(), token)
			wantKind(t, name+" token", err, fault.KindUnauthenticated)
		}

		_, err = s.Refresh(t.Context(), theirs.RefreshToken)
		wantKind(t, "another session's refresh token", err, fault.KindUnauthenticated)
		waitFor(t, "an open session of another node ends",
			func() bool { return fault.KindOf(other.CheckPrincipal(open)) == fault.KindForbidden })

		for _, token := range []string{mine.AccessToken, exchanged, bobs.AccessToken} {
			other.mustAuthenticate(t, token)
		}

		again := must(s.Refresh(t.Context(), mine.RefreshToken))(t)
		s.mustAuthenticate(t, again.AccessToken)
		_, err = s.Login(t.Context(), demoLogin("alice"))
		wantKind(t, "the old password", err, fault.KindUnauthenticated)
		c := demoLogin("alice")
		c.Password = nextPassword
		fresh := must(s.Login(t.Context(), c))(t)
		wantKind(t, "a phone with the old password", phone(password), fault.KindUnauthenticated)

		if err := phone(nextPassword); err != nil {
			t.Errorf("a phone with the new password: %v", err)
		}

		// A second change ends the session that made the first.
		if err := s.ChangePassword(t.Context(), s.mustAuthenticate(t, fresh.AccessToken), nextPassword, password,
			""); err != nil {
			t.Fatal(err)
		}

		_, err = s.Authenticate(t.Context(), again.AccessToken)
		wantKind(t, "the first session", err, fault.KindUnauthenticated)

		if err := s.SetPassword(t.Context(), "demo", "alice", nextPassword); err != nil {
			t.Fatal(err)
		}

		_, err = s.Authenticate(t.Context(), fresh.AccessToken)
		wantKind(t, "a session after an operator's change", err, fault.KindUnauthenticated)
		wantKind(t, "an unknown user", s.SetPassword(t.Context(), "demo", "nobody", nextPassword), fault.KindNotFound)
	})
}

func TestGuessesAtTheCurrentPasswordAreFailedLogins(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	p := s.mustAuthenticate(t, s.mustLogin(t, "alice").AccessToken)
	for range failuresPerUser {
		err := s.ChangePassword(t.Context(), p, "a wrong password", nextPassword, "192.0.2.7")
		wantKind(t, "a wrong password", err, fault.KindInvalid)
	}

	wantKind(t, "one more", s.ChangePassword(t.Context(), p, password, nextPassword, "192.0.2.7"), fault.KindLimited)
	c := demoLogin("alice")
	c.Address = "192.0.2.7"
	_, err := s.Login(t.Context(), c)
	wantKind(t, "a login from there", err, fault.KindLimited)
	wantKind(t, "an API key", s.ChangePassword(t.Context(), &Principal{KeyID: "k"}, password, nextPassword, ""),
		fault.KindForbidden)
}
