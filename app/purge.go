package app

import (
	"context"
	"fmt"

	"trunkline/app/backend"
)

// buildPurge builds the job that purges deleted accounts.
func (a *App) buildPurge(ctx context.Context, purged backend.Purged) error {
	purge, err := backend.Purge(ctx, a.settings, a.db, a.identity.Directory, purged, a.log)
	if err != nil {
		return fmt.Errorf("purge of deleted accounts: %w", err)
	}
	a.lifecycle.addRun("purge of deleted accounts", purge.Run)
	return nil
}
