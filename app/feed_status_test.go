package app

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"testing"
	"time"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/internal/testservice/testdb"
	"trunkline/stats"
)

// putFeed stores what a node says of a feed, for an hour.
func putFeed(t *testing.T, db *sqldb.DB, name, node string, state feed.State, accounts ...string) {
	t.Helper()
	text, err := json.Marshal(
		map[string]any{"name": name, "kind": feed.KindAsterisk, "node": node, "state": state, "accounts": accounts})
	if err != nil {
		t.Fatal(err)
	}

	_, err = db.ExecContext(t.Context(),
		`INSERT INTO feeds_status (feed, node, state, status, updated_at) VALUES ($1, $2, $3, $4, `+db.ClockExpr()+` + 3600000)
		ON CONFLICT (feed, node) DO UPDATE SET state = excluded.state, status = excluded.status`, name, node,
		string(state), string(text))
	if err != nil {
		t.Fatal(err)
	}
}

// newTestFeedReader reads the feeds of acme, acme-north below it, and other.
func newTestFeedReader(t *testing.T) (*feedReader, *sqldb.DB) {
	t.Helper()
	db := testdb.Open(t, testdb.SQLite(t))
	directory := newTestIdentity(t, db).Directory

	for _, account := range []identity.NewAccount{
		{ID: "acme", Name: "acme", Domain: "acme.example"},
		{ID: "acme-north", Name: "north", Domain: "north.acme.example", Parent: "acme"},
		{ID: "other", Name: "other", Domain: "other.example"},
	} {
		if _, err := directory.CreateAccount(t.Context(), account); err != nil {
			t.Fatal(err)
		}
	}

	store, err := feed.NewStore(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}

	return &feedReader{
		store: store, directory: directory, log: slog.New(slog.DiscardHandler),
		partition: func(_ context.Context, account string) (int, error) { return len(account), nil },
		changes:   db.WatchChanges(), nextCheckAt: map[string]time.Time{},
	}, db
}

// A feed is connected where one of its nodes is, once for each of its accounts; a feed without
// accounts is of those that are below no other.
func TestStatesOfFeedsByAccount(t *testing.T) {
	s, db := newTestFeedReader(t)
	putFeed(t, db, "pbx", "node-1", feed.StateStandby, "acme", "north.acme.example")
	putFeed(t, db, "pbx", "node-2", feed.StateConnected, "acme", "north.acme.example")
	putFeed(t, db, "shared", "node-1", feed.StateRefused)
	putFeed(t, db, "stale", "node-1", feed.StateConnected, "gone")

	states, err := s.FeedStates(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	slices.SortFunc(states, func(a, b stats.FeedState) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Name, b.Name))
	})
	want := []stats.FeedState{
		{Account: "acme", Partition: 4, Name: "pbx", Connected: true}, {Account: "acme", Partition: 4, Name: "shared"},
		{Account: "acme-north", Partition: 10, Name: "pbx", Connected: true},
		{Account: "other", Partition: 5, Name: "shared"},
	}
	if !slices.Equal(states, want) {
		t.Errorf("%+v, want %+v", states, want)
	}

	s.partition = func(context.Context, string) (int, error) { return 0, fault.Unavailable(nil, 0, "Kafka is away") }
	if states, err := s.FeedStates(t.Context()); err == nil || states != nil {
		t.Errorf("%+v, %v, while the partitions are not known", states, err)
	}
}

func TestAnAccountSeesTheFeedsOfItsOwnTree(t *testing.T) {
	s, db := newTestFeedReader(t)
	putFeed(t, db, "both", "node-1", feed.StateConnected, "acme", "acme-north")
	putFeed(t, db, "north", "node-1", feed.StateConnected, "acme-north")
	putFeed(t, db, "shared", "node-1", feed.StateConnected)

	for account, want := range map[string][]string{
		"acme": {"both", "north", "shared"}, "acme-north": {"both", "north"}, "other": {"shared"}, "gone": nil,
	} {
		statuses, err := s.FeedStatuses(t.Context(), account)
		var names []string
		for _, status := range statuses {
			names = append(names, status.Name)
		}

		if err != nil || !slices.Equal(names, want) {
			t.Errorf("%s sees %q, %v, want %q", account, names, err, want)
		}
	}
}
