package app

import (
	"context"
	"fmt"

	"trunkline/api"
	"trunkline/cdrindex"
	"trunkline/config/settings"
)

// buildReports builds the index of call records for those who fill it and those
// who ask it.
func (a *App) buildReports(ctx context.Context, deps *api.Deps) error {
	if !a.has(settings.RoleCDRIndex) && !a.has(settings.RoleAPI) {
		return nil
	}
	index, err := cdrindex.New(ctx, cdrindex.Config{RetentionMonths: a.settings.CDR.RetentionMonths}, a.db, a.registry, a.log)
	if err != nil {
		return fmt.Errorf("call records: %w", err)
	}
	if a.has(settings.RoleCDRIndex) {
		a.life.runs("cdrindex", cdrindex.NewIndexer(index, cdrindex.OnKafka(a.cluster), a.tracer).Run)
	}
	if a.has(settings.RoleAPI) {
		deps.Reports = index
	}
	return nil
}
