package identity

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

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

		if !slices.ContainsFunc(s.reported(t, "demo", "otp.enrol", 6),
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

// tenant is the administrator of an account.
func tenant(accountID string) *Principal {
	return &Principal{UserID: "someone", AccountID: accountID, Role: RoleAdmin, Audience: AudienceAPI}
}

func TestATenantTakesNoNameOfTheServer(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		s := startService(t, cfg, Config{
			ReservedDomains: []string{"pbx.example.com", "sip.acme.example", "later"},
			Accounts:        AccountSettings{Domains: []string{"*.customers.example", "special.example"}},
		})
		ctx := t.Context()
		must(s.CreateAccount(ctx, NewAccount{ID: "acme", Name: "acme", Domain: "acme.example"}))(t)
		must(s.CreateAccount(ctx, NewAccount{ID: "sub", Name: "sub", Domain: "sub.acme.example", Parent: "acme"}))(t)
		domains := []string{
			"127.0.0.1", "10.1.2.3", "[::1]", "::1", "2001:db8::1", "127.1", "2130706433", "0x7f000001",
			"::ffff:192.0.2.1", "1.2.3.4.",
			"pbx.example.com", "PBX.example.com", "pbx.example.com.", "sip.acme.example", "localhost", "a.localhost",
			"other.example", "example", "evilacme.example", ".acme.example", "customers.example",
		}

		for _, domain := range domains {
			_, err := s.CreateAccount(ctx,
				NewAccount{Name: "x " + domain, Domain: domain, Parent: "acme", By: tenant("acme")})
			wantKind(t, "creating "+domain, err, fault.KindInvalid)
			_, err = s.UpdateAccount(ctx, "sub",
				AccountUpdate{Name: "sub", Domain: domain, Parent: "acme", By: tenant("acme")})
			wantKind(t, "changing to "+domain, err, fault.KindInvalid)
		}

		for _, domain := range []string{"127.0.0.1", "pbx.example.com", "localhost"} {
			_, err := s.CreateAccount(ctx, NewAccount{Name: "x " + domain, Domain: domain, FromFeed: true})
			wantKind(t, "a feed's "+domain, err, fault.KindInvalid)
		}

		_, err := s.CreateAccount(ctx, NewAccount{Name: "operator's", Domain: "192.0.2.1"})
		wantKind(t, "the operator's IP address", err, fault.KindInvalid)
		_, err = s.CreateAccount(ctx,
			NewAccount{Name: "future.example", Domain: "a.acme.example", Parent: "acme", By: tenant("acme")})
		wantKind(t, "the domain of a later account as a name", err, fault.KindInvalid)
		_, err = s.CreateAccount(ctx,
			NewAccount{Name: "Later", Domain: "a.acme.example", Parent: "acme", By: tenant("acme")})
		wantKind(t, "the name of a later account that a feed is for", err, fault.KindInvalid)

		for _, id := range []string{"future", "acme", "acme-", "acmefuture"} {
			_, err := s.CreateAccount(ctx,
				NewAccount{ID: id, Name: "x", Domain: "b.acme.example", Parent: "acme", By: tenant("acme")})
			wantKind(t, "the id "+id, err, fault.KindInvalid)
		}

		for i, n := range []NewAccount{
			{Name: "a", Domain: "a.acme.example"}, {ID: "acme-b", Name: "b", Domain: "special.example"},
			{Name: "c", Domain: "c.customers.example"},
		} {
			n.Parent, n.By = "acme", tenant("acme")
			if _, err := s.CreateAccount(ctx, n); err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}

		must(s.CreateAccount(ctx, NewAccount{Name: "operator", Domain: "pbx.example.com"}))(t)

		// What an account has stays, and does not hinder other changes.
		if _, err := s.db.ExecContext(ctx,
			`UPDATE identity_accounts SET domain = '10.0.0.1' WHERE id = 'sub'`); err != nil {
			t.Fatal(err)
		}

		must(s.UpdateAccount(ctx, "sub",
			AccountUpdate{Name: "renamed", Domain: "10.0.0.1", Parent: "acme", By: tenant("acme")}))(t)
	})
}

func TestNamesOfADeletedAccountStayTaken(t *testing.T) {
	testdb.OnBoth(t, func(t *testing.T, cfg sqldb.Config) {
		c := newClock()
		s := startService(t, cfg, Config{Now: c.now, Accounts: DefaultAccountSettings()})
		must(s.CreateAccount(t.Context(), NewAccount{ID: "gone", Name: "Gone", Domain: "gone.example"}))(t)
		must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "Other", Domain: "other.example"}))(t)
		must(s.DeleteAndPurgeAccount(t.Context(), "gone", ""))(t)
		taken := []NewAccount{
			{Name: "Gone", Domain: "x.example"}, {Name: "x", Domain: "gone.example"}, {Name: "x", Domain: "gone"},
			{Name: "gone.example", Domain: "x.example"},
			{ID: "Gone", Name: "x", Domain: "x.example"}, {Name: "gone", Domain: "x.example"},
		}

		for _, n := range taken {
			_, err := s.CreateAccount(t.Context(), n)
			wantKind(t, n.ID+" "+n.Name+" "+n.Domain, err, fault.KindConflict)
		}

		_, err := s.UpdateAccount(t.Context(), "other", AccountUpdate{Name: "Other", Domain: "gone.example"})
		wantKind(t, "another's new domain", err, fault.KindConflict)
		c.add(DefaultAccountSettings().PurgeAfter + time.Second)
		must(s.CreateAccount(t.Context(), NewAccount{Name: "Gone", Domain: "gone.example"}))(t)
	})
}
