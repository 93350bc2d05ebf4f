package app

import (
	"context"

	"trunkline/ingest/deadletter"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
)

func (a *App) newDeadLetters() *deadletter.AccountLetters {
	directory := FeedDirectory{a.identity.Directory}
	letters := deadletter.New(deadletter.Deps{
		Log: a.cluster, Producer: a.newProducer("dead letters' producer", kafka.ProducerConfig{}),
		Feeds:         a.settings.Feeds,
		WithDirectory: func(_ context.Context, work func(feed.Directory) error) error { return work(directory) },
	})
	return deadletter.NewAccountLetters(letters, a.identity.Directory.Tree, directory)
}
