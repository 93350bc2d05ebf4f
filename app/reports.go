package app

import (
	"context"
	"fmt"

	"trunkline/cdrindex"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

// buildReports builds the index of call records for the indexer, the reports and recordings.
func (a *App) buildReports(ctx context.Context) (*cdrindex.Index, error) {
	if !a.hasRole(settings.RoleCDRIndex) && !a.handlesCalls() {
		return nil, nil
	}

	index, err := cdrindex.New(ctx, a.settings.CDR, a.db, a.registry, a.log)
	if err != nil {
		return nil, fmt.Errorf("call records: %w", err)
	}

	if a.hasRole(settings.RoleCDRIndex) {
		a.lifecycle.addRun("cdrindex", cdrindex.NewIndexer(index, kafka.NewLog(a.cluster), a.tracer).Run)
	}

	return index, nil
}
