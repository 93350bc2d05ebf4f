package app

import (
	"context"

	"trunkline/internal/kafka"
	"trunkline/settings"
	"trunkline/stats"
	"trunkline/stats/figures"
)

// buildQueueConfigs builds the configurations of queues for the roles that write and read them.
func buildQueueConfigs(b *base) *stats.QueueConfigs {
	if !b.hasRole(settings.RoleStats) && !b.hasRole(settings.RoleAPI) {
		return nil
	}

	configs := stats.NewQueueConfigs(b.cluster, b.newProducer("queue configuration's producer", kafka.ProducerConfig{}))
	if b.hasRole(settings.RoleAPI) {
		b.lifecycle.addRun("inheritance of alerts", func(ctx context.Context) error {
			return configs.KeepInheritance(ctx, accountTree{b.identity.Directory}, func(err error) {
				b.log.Warn("which account inherits the alerts of which cannot be stored, retrying", "error", err)
			})
		})
	}

	return configs
}

func buildStats(b *base, configs *stats.QueueConfigs, figureStore *figures.Store, feeds *feedReader) error {
	if !b.hasRole(settings.RoleStats) {
		return nil
	}

	processor, err := stats.New(b.settings.Stats, stats.Deps{
		LogReader: kafka.NewLog(b.cluster), Producer: b.newProducer("stats' producer", kafka.ProducerConfig{}),
		Accounts: accountDirectory{b.identity.Directory}, Configs: configs, Rebuilds: figureStore.Rebuilds(),
		Feeds: feeds,
	}, b.registry, b.log)
	if err != nil {
		return err
	}

	b.lifecycle.addRun("stats", processor.Run)
	return nil
}
