package app

import (
	"context"
	"fmt"

	"trunkline/cdrindex"
	"trunkline/internal/kafka"
	"trunkline/settings"
)

// buildCallRecordIndex builds the index of call records for the indexer, the reports and recordings.
func buildCallRecordIndex(ctx context.Context, b *base) (*cdrindex.Index, error) {
	if !b.hasRole(settings.RoleCDRIndex) && !b.handlesCalls() {
		return nil, nil
	}

	index, err := cdrindex.New(ctx, b.settings.CDR, b.db, b.registry, b.log)
	if err != nil {
		return nil, fmt.Errorf("call records: %w", err)
	}

	if b.hasRole(settings.RoleCDRIndex) {
		b.lifecycle.addRun("cdrindex", cdrindex.NewIndexer(index, kafka.NewLog(b.cluster), b.tracer).Run)
	}

	return index, nil
}
