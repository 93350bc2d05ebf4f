package app

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
	"trunkline/internal/sqldb"
	"trunkline/stats"
)

// feedReader implements stats.Feeds and api.Feeds.
type feedReader struct {
	store     *feed.Store
	directory *identity.Directory
	partition func(ctx context.Context, account string) (int, error)
	feeds     []feed.Config // of this node's settings
	log       *slog.Logger
	changes   *sqldb.ChangeWatch // of FeedStates, since it found no feed

	checks sync.Mutex
	busy   map[string]time.Time // by feed: no check begins before
}

func newFeedReader(ctx context.Context, b *base) (*feedReader, error) {
	store, err := feed.NewStore(ctx, b.db)
	if err != nil {
		return nil, fmt.Errorf("states of feeds: %w", err)
	}
	return &feedReader{
		store: store, directory: b.identity.Directory, partition: b.accountPartition, feeds: b.settings.Feeds,
		log: b.log, changes: b.db.WatchChanges(), busy: map[string]time.Time{},
	}, nil
}

// FeedStates implements stats.Feeds. It is for one goroutine.
func (s *feedReader) FeedStates(ctx context.Context) ([]stats.FeedState, error) {
	var statuses []feed.AccountsStatus
	err := s.changes.Poll(func() (err error) {
		statuses, err = s.store.ListWithAccounts(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}

	if len(statuses) > 0 { // a status expires
		s.changes.Distrust()
	}

	type place struct{ account, name string }
	connected := map[place]bool{}
	tree := s.directory.Tree()

	for i := range statuses {
		status := &statuses[i]
		for _, account := range accountsOf(tree, status.Accounts) {
			at := place{account, status.Name}
			// Of the nodes that read a feed, one that is connected is enough.
			connected[at] = connected[at] || status.State == feed.StateConnected
		}
	}

	var states []stats.FeedState
	for at, is := range connected {
		partition, err := s.partition(ctx, at.account)
		if err != nil {
			return nil, err
		}
		states = append(states,
			stats.FeedState{Account: at.account, Partition: partition, Name: at.name, Connected: is})
	}

	return states, nil
}

// FeedStatuses implements api.Feeds.
func (s *feedReader) FeedStatuses(ctx context.Context, account string) ([]feed.Status, error) {
	found, err := s.store.ListWithAccounts(ctx)
	var statuses []feed.Status
	tree := s.directory.Tree()

	for i := range found {
		for _, id := range accountsOf(tree, found[i].Accounts) {
			if tree.Contains(account, id) {
				statuses = append(statuses, found[i].Status)
				break
			}
		}
	}

	return statuses, err
}

const (
	// checkWait is the time for which a check waits for the connection, and then for an event.
	checkWait = 8 * time.Second
	// checkPause is the time after a check of a feed before the next: each logs in and reads the
	// whole state of the platform.
	checkPause = 5 * time.Second
)

// CheckFeed implements api.Feeds.
func (s *feedReader) CheckFeed(ctx context.Context, account, name string) (*feed.CheckResult, error) {
	found, err := s.store.ListWithAccounts(ctx)
	if err != nil {
		return nil, err
	}

	tree := s.directory.Tree()
	own, others := false, false
	for i := range found {
		if found[i].Name != name {
			continue
		}

		for _, id := range accountsOf(tree, found[i].Accounts) {
			inside := tree.Contains(account, id)
			own, others = own || inside, others || !inside
		}
	}

	index := slices.IndexFunc(s.feeds, func(c feed.Config) bool { return c.Name == name })
	switch {
	// First, so that an account does not learn which feeds others have.
	case !own:
		return nil, fault.NotFound("Feed not found")
	case others:
		return nil, fault.Forbidden(
			"The feed has events of other accounts too: who runs the service checks it, with trunkline feed check")
	case index < 0:
		return nil, fault.Unavailable(nil, 0,
			"The settings of this node do not have the feed: a node with the roles ingest and api can check it")
	}

	if err := s.beginCheck(name, time.Now()); err != nil {
		return nil, err
	}
	defer s.endCheck(name)

	result, err := CheckFeed(ctx, s.directory, s.feeds[index], checkWait, s.log)
	if err == nil {
		hideForeignEvent(tree, account, result)
	}

	return result, err
}

// beginCheck returns fault.KindLimited while the feed is being checked, and for checkPause after.
func (s *feedReader) beginCheck(name string, now time.Time) error {
	s.checks.Lock()
	defer s.checks.Unlock()
	wait := s.busy[name].Sub(now)
	if wait > 0 {
		return fault.Limited(wait, "The feed is being checked, or was just now")
	}
	s.busy[name] = now.Add(3 * checkWait) // longer than a check
	return nil
}

func (s *feedReader) endCheck(name string) {
	s.checks.Lock()
	defer s.checks.Unlock()
	s.busy[name] = time.Now().Add(checkPause)
}

// hideForeignEvent removes what an event tells, names included, unless it is the account's or of one
// below it: a platform of an account may have calls that no rule maps, or that are another's by now.
// The account above all others sees those of nobody.
func hideForeignEvent(tree *identity.Tree, account string, result *feed.CheckResult) {
	if result.Event == nil {
		return
	}
	owner, known := tree.Account(result.Event.Account)
	root, _ := tree.OnlyRoot()
	if known && tree.Contains(account, owner.ID) || account == root.ID {
		return
	}
	result.Event = &feed.CheckedEvent{Format: result.Event.Format}
}

// accountsOf returns the ids of the accounts of a feed: where the settings name none, those that
// are below no other.
func accountsOf(tree *identity.Tree, refs []string) (ids []string) {
	for _, ref := range refs {
		account, ok := tree.Resolve(ref)
		if ok {
			ids = append(ids, account.ID)
		}
	}

	if len(refs) > 0 {
		return ids
	}

	for _, account := range tree.Accounts() {
		if account.ParentID == "" {
			ids = append(ids, account.ID)
		}
	}

	return ids
}
