package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"trunkline/identity"
	"trunkline/ingest/feed"
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

	checkMu     sync.Mutex           // guards nextCheckAt
	nextCheckAt map[string]time.Time // by feed: no check begins before
}

func newFeedReader(ctx context.Context, b *base) (*feedReader, error) {
	store, err := feed.NewStore(ctx, b.db)
	if err != nil {
		return nil, fmt.Errorf("states of feeds: %w", err)
	}
	return &feedReader{
		store: store, directory: b.identity.Directory, partition: b.accountPartition, feeds: b.settings.Feeds,
		log: b.log, changes: b.db.WatchChanges(), nextCheckAt: map[string]time.Time{},
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
