package app

import (
	"context"
	"fmt"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/stats"
)

// feedReader implements stats.Feeds and api.FeedStatuses.
type feedReader struct {
	store     *feed.Store
	directory *identity.Service
	partition func(ctx context.Context, account string) (int, error)
}

func (a *App) newFeedReader(ctx context.Context) (*feedReader, error) {
	store, err := feed.NewStore(ctx, a.db)
	if err != nil {
		return nil, fmt.Errorf("states of feeds: %w", err)
	}
	return &feedReader{store, a.identity, a.accountPartition}, nil
}

// FeedStates implements stats.Feeds.
func (s *feedReader) FeedStates(ctx context.Context) ([]stats.FeedState, error) {
	statuses, err := s.store.ListWithAccounts(ctx)
	if err != nil {
		return nil, err
	}
	type place struct{ account, name string }
	connected := map[place]bool{}
	tree := s.directory.Tree()
	for i := range statuses {
		status := &statuses[i]
		for _, account := range accountsOf(tree, status.Accounts) {
			at := place{account, status.Name}
			connected[at] = connected[at] || status.State == feed.StateConnected
		}
	}

	var states []stats.FeedState
	for at, is := range connected {
		partition, err := s.partition(ctx, at.account)
		if err != nil {
			return nil, err
		}
		states = append(states, stats.FeedState{Account: at.account, Partition: partition, Name: at.name, Connected: is})
	}
	return states, nil
}

// FeedStatuses implements api.FeedStatuses.
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

// accountTree implements stats.AccountTree.
type accountTree struct{ directory *identity.Service }

// Ancestors implements stats.AccountTree.
func (t accountTree) Ancestors() map[string][]string {
	all := map[string][]string{}
	tree := t.directory.Tree()
	for _, account := range tree.Accounts() {
		above := []string{}
		for parent := account.ParentID; parent != "" && len(above) < len(all)+1000; {
			found, ok := tree.Account(parent)
			if !ok {
				break
			}
			above = append(above, parent)
			parent = found.ParentID
		}
		all[account.ID] = above
	}
	return all
}
