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

		if err := s.portal(t, demoPassword, "192.0.2.1"); err != nil { // stores the hash for phones
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
			known, unknown := fault.As(login("alice", demoPassword, otp, "198.51.100.1")), fault.As(
				login("nobody", demoPassword, otp, "198.51.100.2"))
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
		if err := login("alice", demoPassword, code(), "198.51.100.3"); err != nil {
			t.Error("with the one-time password:", err)
		}

		c.add(otpPeriod)
		for range failuresPerUser {
			_ = login("alice", "a guess", code(), "198.51.100.4")
		}

		wantKind(t, "guesses with the code", login("alice", demoPassword, code(), "198.51.100.4"), fault.KindLimited)

		if err := s.loginPhone(t, device, "198.51.100.5"); err != nil {
			t.Error("a phone with a device password:", err)
		}

		wantKind(t, "a phone with the portal password", s.loginPhone(t, demoPassword, "198.51.100.6"),
			fault.KindLimited)
		wantKind(t, "a phone that guesses", s.loginPhone(t, "a guess", "198.51.100.6"), fault.KindLimited)
		c.add(failureWindow + time.Second)

		if err := login("alice", demoPassword, code(), "198.51.100.7"); err != nil {
			t.Error("when the answer said:", err)
		}
	})
}
