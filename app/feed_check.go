package app

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	wait := s.nextCheckAt[name].Sub(now)
	if wait > 0 {
		return fault.Limited(wait, "The feed is being checked, or was just now")
	}
	s.nextCheckAt[name] = now.Add(3 * checkWait) // longer than a check
	return nil
}

func (s *feedReader) endCheck(name string) {
	s.checkMu.Lock()
	defer s.checkMu.Unlock()
	s.nextCheckAt[name] = time.Now().Add(checkPause)
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

// CheckFeed connects to a feed's platform as feed.Check does. The error is that of the feed's settings.
func CheckFeed(ctx context.Context, directory *identity.Directory, cfg feed.Config, wait time.Duration,
	log *slog.Logger) (*feed.CheckResult, error) {
	cfg.SyncAccounts = false // a check has no side effects
	accounts := FeedDirectory{directory}
	platform, err := FeedPlatform(directory)(cfg, feed.Deps{
		Accounts: feed.NewAccounts(cfg, accounts), Metrics: prometheus.NewRegistry(), Log: log,
	})
	if err != nil {
		return nil, err
	}
	return feed.Check(ctx, cfg, platform, accounts, wait), nil
}
