package app

import (
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/panics"
	"trunkline/telephony/ami"
)

// Every kind of the settings is in the program, any number of them beside each other
// and beside the origination driver of the same platform.
func TestFeedsOfEveryKindAreBuilt(t *testing.T) {
	registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	recoverer := panics.New(registry, log)
	if _, err := ami.New(ami.Config{Address: "127.0.0.1:1", Username: "u", Secret: "s"},
		ami.Deps{Log: log, Metrics: registry, Panics: recoverer}); err != nil {
		t.Fatal(err) // the driver's
	}

	for _, cfg := range []feed.Config{
		{Kind: feed.KindFreeSWITCH, Address: "127.0.0.1:1", Password: "p"},
		{Kind: feed.KindAsterisk, Address: "127.0.0.1:1", Username: "u", Secret: "s"},
		{Kind: feed.KindKazoo, URL: "amqp://u:p@127.0.0.1:1/"},
	} {
		for _, name := range []string{"one", "two"} {
			cfg.Name, cfg.Redundancy, cfg.TimeZone = name, 1, "UTC"
			if _, err := FeedPlatform(nil)(cfg,
				feed.Deps{Accounts: feed.NewAccounts(cfg, FeedDirectory{}), Metrics: registry, Log: log,
					Panics: recoverer}); err != nil {
				t.Errorf("feed %s of kind %s: %v", name, cfg.Kind, err)
			}
		}
	}
}

// A check by an account shows the first event of the platform only if it is the account's.
func TestACheckShowsNoEventOfAnotherAccount(t *testing.T) {
	account := func(id, parent string) identity.Account {
		return identity.Account{ID: id, Name: id, Domain: id, ParentID: parent}
	}

	one := identity.NewTree(account("root", ""), account("acme", "root"), account("sub", "acme"),
		account("other", "root"))
	several := identity.NewTree(account("acme", ""), account("other", ""))
	for _, c := range []struct {
		tree           *identity.Tree
		account, owner string
		shown          bool
	}{
		{one, "acme", "acme", true}, {one, "acme", "sub", true}, {one, "acme", "other", false},
		{one, "acme", "root", false},
		{one, "acme", "", false}, {one, "acme", "nobody", false}, {one, "root", "", true}, {one, "root", "other", true},
		{several, "acme", "", false}, {several, "acme", "other", false}, {several, "acme", "acme", true},
	} {
		r := &feed.CheckResult{Event: &feed.CheckedEvent{Format: "asterisk", Account: c.owner,
			Names: []string{"q@other.example"}, Value: []byte(`{"caller":"1"}`)}}
		hideForeignEvent(c.tree, c.account, r)

		if r.Event.Format != "asterisk" || (r.Event.Value != nil) != c.shown || (r.Event.Names != nil) != c.shown ||
			(r.Event.Account == c.owner) != (c.shown || c.owner == "") {
			t.Errorf("%s sees of %q: %+v", c.account, c.owner, r.Event)
		}
	}

	hideForeignEvent(one, "acme", &feed.CheckResult{})
}

// One account does not keep another from checking its feed, nor log in to a platform without end.
func TestChecksOfAFeedHaveAPause(t *testing.T) {
	s := &feedReader{busy: map[string]time.Time{}}
	now := time.Now()
	if err := s.beginCheck("pbx", now); err != nil {
		t.Fatal(err)
	}
	if err := s.beginCheck("other", now); err != nil {
		t.Errorf("another feed: %v", err)
	}

	for _, at := range []time.Time{now, now.Add(2 * checkWait)} {
		if err := s.beginCheck("pbx", at); fault.KindOf(err) != fault.KindLimited {
			t.Errorf("while it is checked: %v", err)
		}
	}

	s.endCheck("pbx")
	if err := s.beginCheck("pbx", time.Now()); fault.KindOf(err) != fault.KindLimited {
		t.Errorf("at once: %v", err)
	}
	if err := s.beginCheck("pbx", time.Now().Add(checkPause)); err != nil {
		t.Errorf("after the pause: %v", err)
	}
}
