package app

import (
	"testing"
	"time"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

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
	s := &feedReader{nextCheckAt: map[string]time.Time{}}
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

func TestWhoMayCheckAFeed(t *testing.T) {
	s, db := newTestFeedReader(t)
	putFeed(t, db, "north", "node-1", feed.StateConnected, "acme-north")
	putFeed(t, db, "shared", "node-1", feed.StateConnected)
	putFeed(t, db, "elsewhere", "node-2", feed.StateConnected, "acme")
	s.feeds = []feed.Config{ // nothing listens there
		{Name: "north", Kind: feed.KindAsterisk, Address: "127.0.0.1:1", Username: "u", Secret: "s", Redundancy: 1,
			TimeZone: "UTC", Account: "acme-north"},
		{Name: "shared", Kind: feed.KindAsterisk, Address: "127.0.0.1:1", Username: "u", Secret: "s", Redundancy: 1,
			TimeZone: "UTC"},
	}

	check := func(account, name string) fault.Kind {
		t.Helper()
		_, err := s.CheckFeed(t.Context(), account, name)
		return fault.KindOf(err)
	}

	for _, c := range []struct {
		account, name string
		want          fault.Kind
	}{
		{"acme", "no-such", fault.KindNotFound},
		{"other", "north", fault.KindNotFound}, // as one that does not exist
		{"acme", "shared", fault.KindForbidden},
		{"acme", "elsewhere", fault.KindUnavailable},
	} {
		if got := check(c.account, c.name); got != c.want {
			t.Errorf("%s checks %s: %q, want %q", c.account, c.name, got, c.want)
		}
	}

	result, err := s.CheckFeed(t.Context(), "acme", "north")
	if err != nil || result == nil || result.OK {
		t.Errorf("a check of a platform that is away: %+v, %v", result, err)
	}
}
