package app

import (
	"context"
	"fmt"
	"time"

	"trunkline/fanout"
	"trunkline/internal/kafka"
	"trunkline/settings"
	"trunkline/stats/figures"
)

// buildFigures builds the store of figures for the roles that write and read them.
func buildFigures(ctx context.Context, b *base) (*figures.Store, error) {
	if !b.hasRole(settings.RoleStats) && !b.hasRole(settings.RoleAPI) && !b.hasRole(settings.RoleFanout) {
		return nil, nil
	}

	store, err := figures.New(ctx, b.settings.Stats.Retention, b.db, b.registry, b.log)
	if err != nil {
		return nil, fmt.Errorf("figures: %w", err)
	}

	if b.hasRole(settings.RoleStats) {
		b.lifecycle.addRun("figures", figures.NewIndexer(store, kafka.NewLog(b.cluster), b.timeZones).Run)
	}

	return store, nil
}

// timeZones returns the time zone of each account.
func (b *base) timeZones() map[string]*time.Location {
	zones := map[string]*time.Location{}
	for _, account := range b.identity.Directory.Tree().Accounts() {
		zones[account.ID] = account.Location()
	}
	return zones
}

// queueFigures implements fanout.QueueFigures, for snapshots.
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
