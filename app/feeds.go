package app

import (
	"context"
	"fmt"

	"trunkline/identity"
	"trunkline/ingest/feed"
	"trunkline/ingest/feed/asterisk"
	"trunkline/ingest/feed/freeswitch"
	"trunkline/ingest/feed/kazoo"
	"trunkline/internal/kafka"
)

// feedPlatforms has the constructors, by kind of feed, that need only feed.Deps.
var feedPlatforms = map[string]feed.Constructor{
	feed.KindAsterisk:   asterisk.New,
	feed.KindFreeSWITCH: freeswitch.New,
}

// FeedPlatform returns the constructor of the platforms of feeds.
func FeedPlatform(directory *identity.Directory) feed.Constructor {
	return func(cfg feed.Config, deps feed.Deps) (feed.Platform, error) {
		construct, ok := feedPlatforms[cfg.Kind]
		if cfg.Kind == feed.KindKazoo {
			construct, ok = kazoo.Constructor(directory), true
		}
		if !ok {
			return nil, fmt.Errorf("feeds of kind %q are not part of this program", cfg.Kind)
		}

		return construct(cfg, deps)
	}
}

// buildFeeds builds the feeds. Readiness does not depend on their platforms.
func buildFeeds(ctx context.Context, b *base) (*feed.Service, error) {
	if len(b.settings.Feeds) == 0 {
		return nil, nil
	}

	store, err := feed.NewStore(ctx, b.db)
	if err != nil {
		return nil, fmt.Errorf("feeds: %w", err)
	}

	feeds, err := feed.NewService(feed.ServiceConfig{
		Settings: b.settings.Feed, Feeds: b.settings.Feeds, DataDir: b.settings.DataDir, Node: b.node,
	}, feed.ServiceDeps{
		Store: store, Directory: FeedDirectory{b.identity.Directory}, Platform: FeedPlatform(b.identity.Directory),
		LogReader: b.cluster,
		Producer:  b.newProducer("feeds' producer", kafka.ProducerConfig{}), Tracer: b.tracer, Metrics: b.registry,
		Log: b.log,
	})
	if err != nil {
		return nil, err
	}

	b.lifecycle.addRunAtOnce("feeds", feeds.Run) // platforms are read while Kafka is unavailable
	return feeds, nil
}

// FeedDirectory implements feed.Directory.
type FeedDirectory struct{ Directory *identity.Directory }

// Resolve implements feed.Directory.
func (d FeedDirectory) Resolve(ref string) (id string, ok bool) {
	account, ok := d.Directory.Tree().Resolve(ref)
	return account.ID, ok
}

// ByDomain implements feed.Directory.
func (d FeedDirectory) ByDomain(domain string) (id string, ok bool) {
	account, ok := d.Directory.Tree().ByDomain(domain)
	return account.ID, ok
}
