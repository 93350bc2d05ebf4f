package app

import (
	"context"

	"trunkline/api"
	"trunkline/format/registry"
	"trunkline/ingest"
	"trunkline/ingest/feed"
	"trunkline/internal/kafka"
	"trunkline/normalizer"
	"trunkline/settings"
)

func (a *App) buildNormalizer() error {
	if !a.hasRole(settings.RoleNormalizer) {
		return nil
	}

	n, err := normalizer.New(normalizer.Config{Settings: a.settings.Normalizer}, normalizer.Deps{
		Log:      kafka.NewLog(a.cluster),
		Producer: a.newProducer("normalizer's producer", kafka.ProducerConfig{}),
		Accounts: accountDirectory{a.identity.Directory}, Tracer: a.tracer,
	}, a.registry, a.log)
	if err != nil {
		return err
	}

	a.lifecycle.addRun("normalizer", n.Run)
	return nil
}

// buildIngest builds the ingest and the feeds.
func (a *App) buildIngest(ctx context.Context) (api.Ingest, *feed.Service, error) {
	if !a.hasRole(settings.RoleIngest) {
		return nil, nil, nil
	}

	in, err := ingest.New(ctx, a.settings.Ingest, ingest.Deps{
		Formats: registry.Lookup, Accounts: accountDirectory{a.identity.Directory},
		Producer: a.newProducer("ingest's producer", kafka.ProducerConfig{}), Log: a.cluster, DB: a.db,
		Tracer: a.tracer,
	}, a.registry, a.log)
	if err != nil {
		return nil, nil, err
	}

	a.lifecycle.addRun("ingest", in.Run)
	feeds, err := a.buildFeeds(ctx)
	return in, feeds, err
}

func (a *App) newProducer(name string, cfg kafka.ProducerConfig) *kafka.Producer {
	p := a.cluster.NewProducer(cfg)
	a.lifecycle.addClose(name, p.Close)
	return p
}
