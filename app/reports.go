package app

import (
	"context"
	"fmt"

	"trunkline/api"
	"trunkline/cdrindex"
	"trunkline/config/settings"
)

// buildReports builds the index of call records for the indexer and the reports.
func (a *App) buildReports(ctx context.Context, deps *api.Deps) error {
	if !a.hasRole(settings.RoleCDRIndex) && !a.hasRole(settings.RoleAPI) {
		return nil
	}
	index, err := cdrindex.New(ctx, a.settings.CDR, a.db, a.registry, a.log)
	if err != nil {
		return fmt.Errorf("call records: %w", err)
	}
	if a.hasRole(settings.RoleCDRIndex) {
		a.lifecycle.addRun("cdrindex", cdrindex.NewIndexer(index, cdrindex.NewKafkaTopic(a.cluster), a.tracer).Run)
	}
	if a.hasRole(settings.RoleAPI) {
		deps.Reports, deps.Audit = index, a.audit
		a.purged.Index, a.purged.Providers = index, a.providers
	}
	return nil
}
