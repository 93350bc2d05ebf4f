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

func buildNormalizer(b *base) error {
	if !b.hasRole(settings.RoleNormalizer) {
		return nil
	}

	n, err := normalizer.New(normalizer.Config{Settings: b.settings.Normalizer}, normalizer.Deps{
		LogReader: kafka.NewLog(b.cluster),
		Producer:  b.newProducer("normalizer's producer", kafka.ProducerConfig{}),
		Accounts:  accountDirectory{b.identity.Directory}, Tracer: b.tracer,
	}, b.registry, b.log)
	if err != nil {
		return err
	}

	b.lifecycle.addRun("normalizer", n.Run)
	return nil
}

// buildIngest builds the ingest and the feeds.
func buildIngest(ctx context.Context, b *base) (api.Ingest, *feed.Service, error) {
	if !b.hasRole(settings.RoleIngest) {
		return nil, nil, nil
	}

	in, err := ingest.New(ctx, b.settings.Ingest, ingest.Deps{
		Formats: registry.Lookup, Accounts: accountDirectory{b.identity.Directory},
		Producer: b.newProducer("ingest's producer", kafka.ProducerConfig{}), LogReader: b.cluster, DB: b.db,
		Tracer: b.tracer,
	}, b.registry, b.log)
	if err != nil {
		return nil, nil, err
	}

	b.lifecycle.addRun("ingest", in.Run)
	feeds, err := buildFeeds(ctx, b)
	return in, feeds, err
}

func (b *base) newProducer(name string, cfg kafka.ProducerConfig) *kafka.Producer {
	p := b.cluster.NewProducer(cfg)
	b.lifecycle.addClose(name, p.Close)
	return p
}
