package identity

import (
	"strings"
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

const nextPassword = "another long password, river"

func TestNewPasswordsAreLongOrUncommon(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	for password, code := range map[string]string{
		"":                        codeRequired,
		"seven77":                 codeTooShort,
		"äöüßäöü":                 codeTooShort, // characters, not bytes
		"password1":               codeTooCommon,
		"PassWord1":               codeTooCommon,
		"sunshine":                codeTooCommon,
		"elizabeth":               codeTooCommon,
		"kx83-vq0":                "",
		"passwordpassword":        codeTooCommon,
		"twelve chars, river":     "",
		strings.Repeat("a", 1025): codeTooLong,
	} {
		_, err := s.CreateUser(t.Context(), NewUser{Account: "demo", Username: sqldb.NewID(), Password: password})
		got := ""
		if err != nil {
			got = fault.As(err).Fields[0].Code
		}

		if got != code {
			t.Errorf("%.20q: %q, want %q (%v)", password, got, code, err)
		}
	}

	err := startService(t, testdb.SQLite(t), Config{}).Seed(t.Context(), []byte(`
accounts: [{id: a, name: a, domain: a.local}]
users: [{account: a, username: u, password: password1}]`))
	if err == nil || fault.As(err).Fields[0].Field != "users[0].password" {
		t.Errorf("a directory file: %v", err)
	}

	// A file that was accepted once does not stop a later start.
	if err := s.Seed(t.Context(), []byte(`
accounts: [{id: a, name: a, domain: a.local}]
users: [{account: a, username: u, password: old}]`)); err != nil {
		t.Error(err)
	}

	_, err = startService(t, testdb.SQLite(t), Config{}).SeedDemo(t.Context(), "demo")
	wantKind(t, "a weak demo password", err, fault.KindInvalid)
}

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

func TestAChannelTokenEndsWithTheSessionItWasExchangedFor(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startService(t, cfg, Config{Now: c.now}).demo(t)
		session := s.mustLogin(t, "alice")

		p := s.mustAuthenticate(t, session.AccessToken)
		exchange := func() (*Principal, error) {
			token, _, err := s.EventsExchange(t.Context(), p, "", Filter{EventTypes: []string{"AGENT_LOGIN"}})
			if err != nil {
				return nil, err
			}
			return s.Authenticate(t.Context(), token, AudienceEvents)
		}

		first := must(exchange())(t)
		if len(first.EventTypes) != 1 {
			t.Errorf("filters %v", first.EventTypes)
		}

		// The token outlives the access token, so the revocation must too.
		c.add(2 * time.Hour)
		if err := s.CheckPrincipal(first); err != nil {
			t.Fatal(err)
		}

		session = must(s.Refresh(t.Context(), session.RefreshToken))(t)
		p = s.mustAuthenticate(t, session.AccessToken)
		second := must(exchange())(t)

		if err := s.Logout(t.Context(), p); err != nil {
			t.Fatal(err)
		}

		c.add(20 * time.Hour)
		if err := s.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}

		for _, channel := range []*Principal{first, second} {
			wantKind(t, "a channel token after the logout", s.CheckPrincipal(channel), fault.KindForbidden)
		}

		_, err := exchange()
		wantKind(t, "an exchange after the logout", err, fault.KindUnauthenticated)
		_, _, err = s.EventsExchange(t.Context(), second, "", Filter{})
		wantKind(t, "an exchange of a channel token", err, fault.KindForbidden)
	})
}
