package app

import (
	"context"

	"trunkline/ingest/deadletter"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
)

func newDeadLetters(b *base) *deadletter.AccountLetters {
	directory := FeedDirectory{b.identity.Directory}
	letters := deadletter.New(deadletter.Deps{
		Log: b.cluster, Producer: b.newProducer("dead letters' producer", kafka.ProducerConfig{}),
		Feeds:         b.settings.Feeds,
		WithDirectory: func(_ context.Context, work func(feed.Directory) error) error { return work(directory) },
	})
	return deadletter.NewAccountLetters(letters, b.identity.Directory.Tree, directory)
}
