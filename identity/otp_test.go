package identity

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"trunkline/internal/fault"
	"trunkline/internal/masterkey"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

func otpFault(err error) string {
	if f := fault.As(err); err != nil && len(f.Fields) == 1 && f.Fields[0].Field == "otp" {
		return f.Fields[0].Code
	}
	return ""
}

func TestOneTimePasswords(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		keys := newRing(t)
		s := startServiceWithKeys(t, testdb.Open(t, cfg), Config{Now: c.now}, NewMemoryLimiter(), keys).demo(t)

		loginWith := func(otp string) LoginRequest {
			login := demoLogin("admin")
			login.OTP = otp
			return login
		}

		login := func(otp string) error {
			_, err := s.Login(t.Context(), loginWith(otp))
			return err
		}

		enrolment := must(s.BeginOTP(t.Context(), loginWith("")))(t)
		code := func() string { return must(totp.GenerateCode(enrolment.Secret, c.now()))(t) }
		if !strings.HasPrefix(enrolment.URI, "otpauth://totp/Trunkline:admin@demo.local?") {
			t.Errorf("URI %s", enrolment.URI)
		}
		if err := login(""); err != nil {
			t.Errorf("before it is confirmed: %v", err)
		}

		_, err := s.ConfirmOTP(t.Context(), loginWith("000000"))
		if otpFault(err) != "wrong" {
			t.Errorf("a wrong code confirms: %v", err)
		}

		recovery := must(s.ConfirmOTP(t.Context(), loginWith(code())))(t)
		if len(recovery) != recoveryCodeCount {
			t.Errorf("%d recovery codes", len(recovery))
		}

		err = login("")
		wantKind(t, "no code", err, fault.KindUnauthenticated)
		if otpFault(err) != codeRequired {
			t.Errorf("no code: %v", err)
		}

		if _, _, err := s.EventsLogin(t.Context(), loginWith(""), Filter{}); otpFault(err) != codeRequired {
			t.Errorf("the channel's login needs no code: %v", err)
		}
		if err := login(code()); otpFault(err) != "wrong" {
			t.Errorf("the code that confirmed is accepted again: %v", err)
		}

		c.add(otpPeriod)
		if err := login(code()); err != nil {
			t.Errorf("a new code: %v", err)
		}
		if err := login(code()); otpFault(err) != "wrong" {
			t.Errorf("a used code is accepted again: %v", err)
		}
		if err := login(strings.ToLower(recovery[0])); err != nil {
			t.Errorf("a recovery code: %v", err)
		}
		if err := login(recovery[0]); otpFault(err) != "wrong" {
			t.Errorf("a used recovery code: %v", err)
		}

		wrong := loginWith(recovery[1])
		wrong.Password = "a wrong password"
		_, err = s.Login(t.Context(), wrong)
		wantKind(t, "a wrong password", err, fault.KindUnauthenticated)

		if err := login(recovery[1]); err != nil {
			t.Errorf("a recovery code was spent on a wrong password: %v", err)
		}
		if _, err := s.BeginOTP(t.Context(), loginWith("")); otpFault(err) != codeRequired {
			t.Errorf("the password alone replaces the secret: %v", err)
		}

		var stored string
		if err := s.db.QueryRowContext(t.Context(), `SELECT secret FROM identity_otp`).Scan(&stored); err != nil ||
			masterkey.KeyID(stored) == "" {
			t.Errorf("the secret is not sealed: %v", err)
		}
		if _, err := masterkey.Rotate(t.Context(), keys, Secrets(s.db, keys), func(int, int) {}); err != nil {
			t.Fatal(err)
		}

		c.add(otpPeriod)
		if err := login(code()); err != nil {
			t.Errorf("after a rotation of the master key: %v", err)
		}

		if err := s.DeleteOTP(t.Context(), "demo", "admin"); err != nil {
			t.Fatal(err)
		}
		if err := login(""); err != nil {
			t.Errorf("after the deletion: %v", err)
		}
	})
}

func TestAnAccountRequiresOneTimePasswordsOfItsAdministrators(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startService(t, cfg, Config{Now: c.now}).demo(t)
		if err := s.RequireOTP(t.Context(), "demo", true); err != nil {
			t.Fatal(err)
		}
		if required := must(s.OTPRequired(t.Context(), "demo"))(t); !required {
			t.Error("not stored")
		}

		s.mustLogin(t, "alice")
		_, err := s.Login(t.Context(), demoLogin("admin"))
		wantKind(t, "an administrator without", err, fault.KindForbidden)
		if otpFault(err) != "enrolment_required" {
			t.Errorf("got %v", err)
		}

		admin := demoLogin("admin")
		_, err = s.ConfirmOTP(t.Context(), withOTP(admin, "123456"))
		wantKind(t, "nothing to confirm", err, fault.KindConflict)
		enrolment := must(s.BeginOTP(t.Context(), admin))(t)
		must(s.ConfirmOTP(t.Context(), withOTP(admin, must(totp.GenerateCode(enrolment.Secret, c.now()))(t))))(t)
		c.add(time.Minute)
		must(s.Login(t.Context(), withOTP(admin, must(totp.GenerateCode(enrolment.Secret, c.now()))(t))))(t)

		byOperator, codes, err := s.EnrolOTP(t.Context(), "demo.local", "admin")
		if err != nil || byOperator.Secret == enrolment.Secret || len(codes) != recoveryCodeCount {
			t.Errorf("%d codes: %v", len(codes), err)
		}

		must(s.Login(t.Context(), withOTP(admin, codes[0])))(t)

		guess := withOTP(admin, "000000")
		guess.Address = "192.0.2.66"
		for range failuresPerUser + 1 {
			_, err = s.Login(t.Context(), guess)
		}

		wantKind(t, "guesses at the code", err, fault.KindLimited)
	})
}

func withOTP(c LoginRequest, otp string) LoginRequest {
	c.OTP = otp
	return c
}

// An attacker who has the password begins an enrolment; then the operator, or the user,
// sets one-time passwords up. The attacker's enrolment is over.
func TestAnEnrolmentBegunEarlierDoesNotSurvive(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startService(t, cfg, Config{Now: c.now}).demo(t)
		confirm := func(secret string) error {
			_, err := s.ConfirmOTP(t.Context(),
				withOTP(demoLogin("admin"), must(totp.GenerateCode(secret, c.now()))(t)))
			return err
		}

		attackers := must(s.BeginOTP(t.Context(), demoLogin("admin")))(t)
		operators, _, err := s.EnrolOTP(t.Context(), "demo", "admin")
		if err != nil {
			t.Fatal(err)
		}

		wantKind(t, "the attacker's enrolment after the operator's", confirm(attackers.Secret), fault.KindConflict)
		must(s.Login(t.Context(),
			withOTP(demoLogin("admin"), must(totp.GenerateCode(operators.Secret, c.now()))(t))))(t)

		_, err = s.BeginOTP(t.Context(), demoLogin("admin"))
		wantKind(t, "another enrolment without a code", err, fault.KindUnauthenticated)

		// With the existing secret's code the user replaces it.
		c.add(otpPeriod)
		next := must(s.BeginOTP(t.Context(),
			withOTP(demoLogin("admin"), must(totp.GenerateCode(operators.Secret, c.now()))(t))))(t)
		if err := confirm(next.Secret); err != nil {
			t.Errorf("the user's own: %v", err)
		}

		got := s.entries(t, "demo")
		user := s.mustFindUser(t, "admin")
		for _, want := range []string{"begun", "confirmed"} {
			if !slices.ContainsFunc(got, func(line string) bool {
				return strings.HasPrefix(line, "otp.enrol user:"+user.ID+" user:"+user.ID) &&
					strings.HasSuffix(line, want)
			}) {
				t.Errorf("no enrolment is %s in %q", want, got)
			}
		}

		if !slices.ContainsFunc(s.awaitEntries(t, "demo", "otp.enrol", 6),
			func(line string) bool { return strings.HasSuffix(line, " refused") }) {
			t.Error("no refused enrolment is in the audit log")
		}
	})
}

// Two enrolments race: what was begun before a secret was confirmed does not replace it.
func TestAnEnrolmentReplacesOnlyTheSecretWhoseCodeBeganIt(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startService(t, cfg, Config{Now: c.now}).demo(t)
		enrolment := must(s.BeginOTP(t.Context(), demoLogin("admin")))(t)
		user := s.mustFindUser(t, "admin")
		_, err := s.db.ExecContext(t.Context(),
			`INSERT INTO identity_otp (id, user_id, secret, master_key_id, confirmed, last_step, created_at)
			VALUES ('another', $1, 'x', 'x', 1, 0, 0)`, user.ID)
		if err != nil {
			t.Fatal(err)
		}

		_, err = s.ConfirmOTP(t.Context(),
			withOTP(demoLogin("admin"), must(totp.GenerateCode(enrolment.Secret, c.now()))(t)))
		wantKind(t, "confirming over a secret", err, fault.KindConflict)
	})
}

func (s *testService) mustFindUser(t testing.TB, username string) User {
	t.Helper()
	return must(selectUser(t.Context(), s.db, "demo", username))(t)
}
