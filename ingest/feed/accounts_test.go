package feed

import "testing"

type fakeDirectory map[string]string // domain to id

func (d fakeDirectory) Resolve(ref string) (string, bool) {
	for domain, id := range d {
		if ref == id || ref == domain {
			return id, true
		}
	}
	return "", false
}

func (d fakeDirectory) ByDomain(domain string) (string, bool) {
	id, ok := d[domain]
	return id, ok
}

func TestAccountsOfNames(t *testing.T) {
	known := fakeDirectory{"acme.example": "acme", "other.example": "other"}
	rules := Config{Accounts: []AccountRule{
		{"support-*", "acme.example"}, {"*-x-*", "other"}, {"*", "new"},
	}}
	for _, c := range []struct {
		name  string
		cfg   Config
		names []string
		want  string
	}{
		{"a domain of the directory", Config{}, []string{"acme.example"}, "acme"},
		{"the first domain that is known", Config{}, []string{"", "no.example", "other.example", "acme.example"}, "other"},
		{"nothing known", Config{}, []string{"no.example"}, ""},
		{"no names", Config{}, nil, ""},
		{"the fixed account by its domain", Config{Account: "acme.example"}, nil, "acme"},
		{"a fixed account that is not known yet", Config{Account: "fresh"}, []string{"other.example"}, "fresh"},
		{"an earlier rule before an earlier name", rules, []string{"a-x-b", "Support-1"}, "acme"},
		{"a pattern with two stars", rules, []string{"a-x-b"}, "other"},
		{"a rule before the directory", rules, []string{"acme.example"}, "new"},
		{"no rule for an empty name", rules, []string{""}, ""},
		{"a rule without a star is the whole name", Config{Accounts: []AccountRule{{"acme", "x"}}}, []string{"acme2"}, ""},
		{"parts do not overlap", Config{Accounts: []AccountRule{{"ab*ba", "x"}}}, []string{"aba"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NewAccounts(c.cfg, known).Account(c.names...); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
