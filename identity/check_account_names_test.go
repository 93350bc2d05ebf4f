package identity

import (
	"testing"
	"time"

	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
)

// A tenant takes no name that reads like another's, and no domain that is none.
func TestTenantsTakeNoLookAlikes(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{}).demo(t)
	for _, n := range []NewAccount{{ID: "acme", Name: "Acme", Domain: "acme.example"},
		{ID: "other", Name: "other", Domain: "other.example"}} {
		must(s.CreateAccount(t.Context(), n))(t)
	}

	by := &Principal{UserID: "u", AccountID: "other", Role: RoleAdmin}
	for i, c := range []struct{ name, domain string }{
		{"ACME", "a1.other.example"}, {"aCme", "a2.other.example"}, {"Ａｃｍｅ", "a3.other.example"},
		{"Acm\u0435", "a4.other.example"}, {"\u0391cme", "a5.other.example"}, {"Demo", "a6.other.example"},
		{"b1", "x.other.example."}, {"b2", "a..other.example"}, {"b3", "*.other.example"},
		{"b4", "evil.example/.other.example"},
		{"b5", "evil@x.other.example"}, {"b6", "-.other.example"}, {"b7", "x\".other.example"},
		{"b8", "ä.other.example"}, {"b9", "a%2e.other.example"},
	} {
		_, err := s.CreateAccount(t.Context(), NewAccount{Name: c.name, Domain: c.domain, Parent: "other", By: by})
		if fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("%d: %q, %q: %v", i, c.name, c.domain, err)
		}
	}

	for _, name := range []string{"Acme Berlin", "Компания", "Εταιρεία 2", "Müller & Söhne"} {
		domain := map[string]string{"Acme Berlin": "berlin", "Компания": "k_1", "Εταιρεία 2": "e-2",
			"Müller & Söhne": "m.s"}[name] + ".other.example"
		account, err := s.CreateAccount(t.Context(), NewAccount{Name: name, Domain: domain, Parent: "other", By: by})
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}

		_, err = s.UpdateAccount(t.Context(), account.ID,
			AccountUpdate{Name: "acMe", Domain: domain, Parent: "other", By: by})
		if fault.KindOf(err) != fault.KindInvalid {
			t.Errorf("renamed: %v", err)
		}
	}
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

// tenant is the administrator of an account.
func tenant(accountID string) *Principal {
	return &Principal{UserID: "someone", AccountID: accountID, Role: RoleAdmin, Audience: AudienceAPI}
}
