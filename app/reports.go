package app

import (
	"context"
	"fmt"

	"trunkline/api"
	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/config/settings"
	"trunkline/fanout"
	"trunkline/stats/figures"
)

// buildReports builds the index of call records for the indexer and the reports.
func (a *App) buildReports(ctx context.Context, deps *api.Deps) error {
	if !a.has(settings.RoleCDRIndex) && !a.has(settings.RoleAPI) {
		return nil
	}
	index, err := cdrindex.New(ctx, a.settings.CDR, a.db, a.registry, a.log)
	if err != nil {
		return fmt.Errorf("call records: %w", err)
	}
	if a.has(settings.RoleCDRIndex) {
		a.life.runs("cdrindex", cdrindex.NewIndexer(index, cdrindex.NewKafkaTopic(a.cluster), a.tracer).Run)
	}
	if a.has(settings.RoleAPI) {
		deps.Reports, deps.Audit = index, a.audit
		a.purged.Index, a.purged.Providers = index, a.providers
	}
	return nil
}

// buildFigures builds the store of figures for the roles that write and read them.
func (a *App) buildFigures(ctx context.Context, deps *api.Deps) error {
	if !a.has(settings.RoleStats) && !a.has(settings.RoleAPI) && !a.has(settings.RoleFanout) {
		return nil
	}
	store, err := figures.New(ctx, a.settings.Stats.Retention, a.db, a.registry, a.log)
	if err != nil {
		return fmt.Errorf("figures: %w", err)
	}
	if a.has(settings.RoleStats) {
		a.life.runs("figures", figures.NewIndexer(store, a.cluster).Run)
	}
	if a.has(settings.RoleAPI) {
		deps.Figures, a.purged.Figures = store, store
		deps.QueueConfigs, a.purged.QueueConfigs = a.queueConfigs, a.queueConfigs
	}
	a.figures = store
	return nil
}

// queueFigures are the figures of snapshots.
type queueFigures struct{ *figures.Store }

// QueuesSince implements fanout.QueueFigures.
func (q queueFigures) QueuesSince(ctx context.Context, accounts []string, since int64) ([]fanout.QueueToday, error) {
	rows, err := q.Store.QueuesSince(ctx, accounts, since)
	all := make([]fanout.QueueToday, 0, len(rows))
	for _, r := range rows {
		today := fanout.QueueToday{AccountID: r.AccountID, QueueID: r.ID,
			Offered: r.Figure("offered"), Answered: r.Figure("answered"), Abandoned: r.Figure("abandoned")}
		if level, ok := r.QueueRow().ServiceLevel(); ok {
			today.ServiceLevel = &level
		}
		if level, ok := r.QueueRow().ServiceLevelStrict(); ok {
			today.ServiceLevelStrict = &level
		}
		all = append(all, today)
	}
	return all, err
}

// buildPurge builds the job that purges deleted accounts.
func (a *App) buildPurge(ctx context.Context) error {
	if !a.has(settings.RoleAPI) {
		return nil
	}
	purge, err := backend.Purge(ctx, a.settings, a.db, a.identity, a.purged, a.log)
	if err != nil {
		return fmt.Errorf("purge of deleted accounts: %w", err)
	}
	a.life.runs("purge of deleted accounts", purge.Run)
	return nil
}
