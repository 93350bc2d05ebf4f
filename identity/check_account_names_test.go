package identity

import (
	"testing"

	"trunkline/internal/fault"
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

// Where several tenants are, no account stands for domains that are none: the realm of a
// phone's challenge would name it.
func TestOnlyOneRootStandsForUnknownDomains(t *testing.T) {
	s := startService(t, testdb.SQLite(t), Config{})
	if _, ok := s.Tree().OnlyRoot(); ok {
		t.Error("a root without accounts")
	}

	s.demo(t)
	must(s.CreateAccount(t.Context(),
		NewAccount{ID: "below", Name: "below", Domain: "below.demo.local", Parent: "demo"}))(t)

	if root, ok := s.Tree().OnlyRoot(); !ok || root.ID != "demo" {
		t.Errorf("the only root is %v", root)
	}

	must(s.CreateAccount(t.Context(), NewAccount{ID: "other", Name: "other", Domain: "other.example"}))(t)
	if root, ok := s.Tree().OnlyRoot(); ok {
		t.Errorf("of two roots %v", root)
	}
}
