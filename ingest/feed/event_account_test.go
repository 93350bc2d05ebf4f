package feed

import (
	"testing"

	"trunkline/event"
	"trunkline/internal/kafka"
)

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
		{"the first domain that is known", Config{}, []string{"", "no.example", "other.example", "acme.example"},
			"other"},
		{"nothing known", Config{}, []string{"no.example"}, ""},
		{"no names", Config{}, nil, ""},
		{"the fixed account by its domain", Config{Account: "acme.example"}, nil, "acme"},
		{"a fixed account that is not known yet", Config{Account: "fresh"}, []string{"other.example"}, "fresh"},
		{"an earlier rule before an earlier name", rules, []string{"a-x-b", "Support-1"}, "acme"},
		{"a pattern with two stars", rules, []string{"a-x-b"}, "other"},
		{"a rule before the directory", rules, []string{"acme.example"}, "new"},
		{"no rule for an empty name", rules, []string{""}, ""},
		{"a rule without a star is the whole name", Config{Accounts: []AccountRule{{"acme", "x"}}}, []string{"acme2"},
			""},
		{"parts do not overlap", Config{Accounts: []AccountRule{{"ab*ba", "x"}}}, []string{"aba"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NewAccounts(c.cfg, known).Account(c.names...); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A dead letter of a feed is mapped by what is known at the time of the retry.
func TestAccountsOfDeadLetters(t *testing.T) {
	feeds := []Config{
		{Name: "pbx", Kind: KindAsterisk, Accounts: []AccountRule{{"support-*", "Acme"}}},
		{Name: "fixed", Kind: KindFreeSWITCH, Account: "acme.example"}, {Name: "kz", Kind: KindKazoo},
	}
	before, after := fakeDirectory{}, fakeDirectory{"acme.example": "a1", "Acme": "a1",
		"realm.example": "00000000000000000000000000000001",
		"a1":            "a1", "deleted-id": "a2"} // a2 has taken the id of a deleted account as its name

	for _, c := range []struct{ name, source, key, names, want string }{
		{"a domain", "feed:pbx", "", "from-internal\nacme.example", "a1"},
		{"a rule", "feed:pbx", "", "support-1", "a1"},
		{"what a rule names", "feed:pbx", "Acme", "", "a1"},
		{"an account", "feed:pbx", "a1", "", "a1"},
		{"a deleted account whose id is another's name", "feed:pbx", "deleted-id", "", ""},
		{"what a rule of another feed names", "feed:kz", "Acme", "", ""},
		{"an account of Kazoo", "feed:kz", "", "00000000000000000000000000000001\nother.example",
			"00000000000000000000000000000001"},
		{"a feed that is not in the settings", "feed:gone", "", "acme.example", "a1"},
		{"no name matches", "feed:pbx", "", "other.example", ""},
		{"no names", "feed:pbx", "", "", ""},
		{"not of a feed", "apikey:1", "", "acme.example", ""},
	} {
		r := &kafka.Record{Key: []byte(c.key), Headers: []kafka.Header{
			{Key: event.HeaderSource, Value: []byte(c.source)}, {Key: event.HeaderAccountNames, Value: []byte(c.names)},
		}}
		if got := FindAccount(feeds, after, r); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}

		// the rule is there, its account is not
		if got := FindAccount(feeds, before, r); got != "" && c.name != "a rule" {
			t.Errorf("%s, before the account exists: got %q", c.name, got)
		}
	}
}

// namedDirectory has one account, by its id and its name.
type namedDirectory struct{ id, name string }

func (d namedDirectory) Resolve(ref string) (string, bool) { return d.id, ref == d.id || ref == d.name }
func (d namedDirectory) ByDomain(string) (string, bool)    { return "", false }

// TestADeadLetterOfKazooIsNotThatOfAnAccountNamedAsItsRealm: an administrator chooses the names of the accounts below
// his own, and would see and send back another's letters.
func TestADeadLetterOfKazooIsNotThatOfAnAccountNamedAsItsRealm(t *testing.T) {
	for _, name := range []string{"realm.example", "00000000000000000000000000000001"} {
		r := &kafka.Record{Headers: []kafka.Header{
			{Key: event.HeaderSource, Value: []byte("feed:kz")}, {Key: event.HeaderAccountNames, Value: []byte(name)},
		}}
		got := FindAccount([]Config{{Name: "kz", Kind: KindKazoo}}, namedDirectory{"other", name}, r)
		if got != "" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// An event of an unknown account keeps the names that were looked up, for a retry of its dead letter.
func TestAnEventOfAnUnknownAccountKeepsItsNames(t *testing.T) {
	k, p := newFakeKafka(), newFakePlatform()
	n := startNode(t, "a", t.TempDir(), openTestStore(t, ""), k, p, Config{})
	eventually(t, "connected", n.is(StateConnected))
	p.mu.Lock()
	p.events = append(p.events, Event{Topic: event.TopicRaw, Format: "scripted", Value: []byte(`{}`),
		Names: []string{"acme.example", "", "sup\nport", "acme.example"}})

	for s := range p.sessions {
		signal(s.news)
	}
	p.mu.Unlock()

	eventually(t, "it is stored", func() bool { return len(k.topic(event.TopicRaw)) > 0 })
	r := k.topic(event.TopicRaw)[0]
	if names := string(r.Header(event.HeaderAccountNames)); names != "acme.example\nsup port" || len(r.Key) != 0 {
		t.Errorf("key %q, names %q", r.Key, names)
	}
}
