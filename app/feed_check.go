package app

import (
	"context"
	"slices"
	"time"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/internal/fault"
)

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
