package identity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// Ten guesses by anybody lock no user out who has a one-time password, and no phone with a
// device password, at whatever address; the answer to the others tells when, and is the same
// for a user who does not exist.
func TestGuessesLockNobodyOutWhoProvesMore(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		limiter := NewMemoryLimiter()
		limiter.now = c.now
		config := configWithPortalPasswords(AllowPortalPassword)
		config.Now = c.now
		s := startServiceOn(t, testdb.Open(t, cfg), config, limiter)
		device := s.demoPhones(t)

		if err := s.loginPortal(t, password, "192.0.2.1"); err != nil { // stores the hash for phones
			t.Fatal(err)
		}

		enrolment, codes, err := s.EnrolOTP(t.Context(), "demo", "alice")
		if err != nil {
			t.Fatal(err)
		}

		login := func(username, password, otp, address string) error {
			_, err := s.Login(t.Context(),
				LoginRequest{Username: username, Password: password, Domain: "demo.local", OTP: otp, Address: address})
			return err
		}

		code := func() string { return must(totp.GenerateCode(enrolment.Secret, c.now()))(t) }
		for i := range 2 * failuresPerUser {
			for _, username := range []string{"alice", "nobody"} {
				_ = login(username, "a guess", "", fmt.Sprint("203.0.113.", i))
			}
		}

		for _, otp := range []string{"", "000000", "1", codes[0]} {
			known, unknown := fault.As(login("alice", password, otp, "198.51.100.1")), fault.As(
				login("nobody", password, otp, "198.51.100.2"))
			if known.Kind != fault.KindLimited || known.RetryAfter != failureWindow ||
				!strings.Contains(known.Message, "300 seconds") {
				t.Errorf("code %q: %v after %v", otp, known, known.RetryAfter)
			}
			if known.Message != unknown.Message || known.RetryAfter != unknown.RetryAfter ||
				known.Kind != unknown.Kind {
				t.Errorf("code %q: a user who does not exist gets %v", otp, unknown)
			}
		}

		wantKind(t, "the code with a wrong password", login("alice", "a guess", code(), "198.51.100.3"),
			fault.KindUnauthenticated)
		if err := login("alice", password, code(), "198.51.100.3"); err != nil {
			t.Error("with the one-time password:", err)
		}

		c.add(otpPeriod)
		for range failuresPerUser {
			_ = login("alice", "a guess", code(), "198.51.100.4")
		}

		wantKind(t, "guesses with the code", login("alice", password, code(), "198.51.100.4"), fault.KindLimited)

		if err := s.loginPhone(t, device, "198.51.100.5"); err != nil {
			t.Error("a phone with a device password:", err)
		}

		wantKind(t, "a phone with the portal password", s.loginPhone(t, password, "198.51.100.6"),
			fault.KindLimited)
		wantKind(t, "a phone that guesses", s.loginPhone(t, "a guess", "198.51.100.6"), fault.KindLimited)
		c.add(failureWindow + time.Second)

		if err := login("alice", password, code(), "198.51.100.7"); err != nil {
			t.Error("when the answer said:", err)
		}
	})
}

// TestFailuresCountOnEveryInterface: ten failures of one user by phone, portal and
// channel together lock the user out of all three, and a success does not reset the
// count.
func TestFailuresCountOnEveryInterface(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		s := startService(t, db, Config{})
		device := s.demoPhones(t)
		bobsPassword, _, err := s.CreateDevice(t.Context(), "demo", "bob", "")
		if err != nil {
			t.Fatal(err)
		}

		loginBobsPhone := func() {
			t.Helper()
			want := md5Hex("1002:demo.local:" + bobsPassword)
			if err := s.AuthenticatePhone(t.Context(), "demo.local", "1002", "192.0.2.66",
				func(h HA1) bool { return h.MD5 == want }); err != nil {
				t.Errorf("bob at the attacker's address: %v", err)
			}
		}

		for i := range failuresPerUser {
			address := fmt.Sprintf("192.0.2.%d", 60+i)
			var err error
			switch i % 3 {
			case 0:
				err = s.loginPhone(t, "wrong", address)
			case 1:
				err = s.loginPortal(t, "wrong", address)
			case 2:
				_, _, err = s.EventsLogin(t.Context(),
					LoginRequest{Username: "ALICE", Password: "wrong", Domain: "demo.local", Address: address},
					Filter{})
			}

			wantKind(t, fmt.Sprint("failure ", i), err, fault.KindUnauthenticated)
			loginBobsPhone()
		}

		wantKind(t, "the portal", s.loginPortal(t, password, "192.0.2.66"), fault.KindLimited)
		wantKind(t, "a phone that guesses", s.loginPhone(t, "wrong", "192.0.2.66"), fault.KindLimited)
		if err := s.loginPhone(t, device, "192.0.2.67"); err != nil {
			t.Error("a phone with its device password, which nobody guesses:", err)
		}

		loginBobsPhone()
	})
}

func TestGuessesAtOnceDoNotPassTheLimit(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	s.demoPhones(t)

	guesses := make(chan bool, 200)
	for range cap(guesses) {
		go func() {
			compared := false
			_ = s.AuthenticatePhone(t.Context(), "demo.local", "1001", "192.0.2.1",
				func(HA1) bool { compared = true; return false })
			guesses <- compared
		}()
	}

	compared := 0
	for range cap(guesses) {
		if <-guesses {
			compared++
		}
	}

	if compared != failuresPerUser {
		t.Errorf("%d guesses were compared", compared)
	}
}

// TestLockoutIsNoWeapon: a user who authenticated from an address within 30 days can log
// in from there while others guess elsewhere, by phone or portal.
func TestLockoutIsNoWeapon(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, db sqldb.Config) {
		c := newClock()
		s := startService(t, db, Config{Now: c.now})
		device := s.demoPhones(t)
		const office, home, v6 = "192.0.2.1", "198.51.100.7", "2001:db8::1"
		if err := s.loginPhone(t, device, office); err != nil {
			t.Fatal(err)
		}
		if err := s.loginPortal(t, password, v6); err != nil {
			t.Fatal(err)
		}

		attack := func() {
			for i := range 2 * failuresPerUser {
				_ = s.loginPortal(t, "wrong", fmt.Sprintf("203.0.113.%d", i))
			}
		}

		attack()
		for range 3 {
			if err := s.loginPhone(t, device, office); err != nil {
				t.Errorf("the phone from its address: %v", err)
			}
			if err := s.loginPortal(t, password, office); err != nil {
				t.Errorf("the user from the phone's address: %v", err)
			}
			if err := s.loginPhone(t, device, "2001:db8::2"); err != nil {
				t.Errorf("from the same IPv6 network: %v", err)
			}
		}

		wantKind(t, "from a new address", s.loginPortal(t, password, home), fault.KindLimited)
		wantKind(t, "from an unknown address", s.loginPortal(t, password, ""), fault.KindLimited)
		for i := range failuresPerUser {
			if err := s.loginPortal(t, "wrong", office); fault.KindOf(err) != fault.KindUnauthenticated &&
				i < failuresPerUser-1 {
				t.Errorf("failure %d at the known address: %v", i, err)
			}
		}

		wantKind(t, "guesses at the known address", s.loginPortal(t, password, office), fault.KindLimited)

		c.add(knownAddressTTL + time.Minute)
		if err := s.service.runMaintenance(t.Context()); err != nil {
			t.Fatal(err)
		}

		wantKind(t, "30 days later", s.loginPortal(t, password, "2001:db8::1"), fault.KindLimited)
		var rows int
		if err := s.db.QueryRowContext(t.Context(),
			`SELECT COUNT(*) FROM identity_known_addresses`).Scan(&rows); err != nil || rows != 0 {
			t.Errorf("%d addresses are stored: %v", rows, err)
		}
	})
}
