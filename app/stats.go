package app

import (
	"context"

	"trunkline/internal/kafka"
	"trunkline/settings"
	"trunkline/stats"
	"trunkline/stats/figures"
)

// buildQueueConfigs builds the configurations of queues for the roles that write and read them.
func (a *App) buildQueueConfigs() *stats.QueueConfigs {
	if !a.hasRole(settings.RoleStats) && !a.hasRole(settings.RoleAPI) {
		return nil
	}

	configs := stats.NewQueueConfigs(a.cluster, a.newProducer("queue configuration's producer", kafka.ProducerConfig{}))
	if a.hasRole(settings.RoleAPI) {
		a.lifecycle.addRun("inheritance of alerts", func(ctx context.Context) error {
			return configs.KeepInheritance(ctx, accountTree{a.identity.Directory}, func(err error) {
				a.log.Warn("which account inherits the alerts of which cannot be stored, retrying", "error", err)
			})
		})
	}

	return configs
}

func (a *App) buildStats(configs *stats.QueueConfigs, figureStore *figures.Store, feeds *feedReader) error {
	if !a.hasRole(settings.RoleStats) {
		return nil
	}

	processor, err := stats.New(a.settings.Stats, stats.Deps{
		Log: kafka.NewLog(a.cluster), Producer: a.newProducer("stats' producer", kafka.ProducerConfig{}),
		Accounts: accountDirectory{a.identity.Directory}, Configs: configs, Rebuilds: figureStore.Rebuilds(),
		Feeds: feeds,
	}, a.registry, a.log)
	if err != nil {
		return err
	}

	a.lifecycle.addRun("stats", processor.Run)
	return nil
}
