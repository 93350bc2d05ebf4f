package app

import (
	"context"
	"fmt"

	"trunkline/app/backend"
)

// buildPurge builds the job that purges deleted accounts.
func buildPurge(ctx context.Context, b *base, r *roleParts) error {
	purge, err := backend.Purge(ctx, b.settings, b.db, b.identity.Directory, backend.Purged{
		Recordings: r.recordings.service, Policies: r.recordings.policies, Encryption: b.sealedStores.encryption,
		Providers: b.sealedStores.providers, Webhooks: b.sealedStores.webhooks, Index: r.index, Figures: r.figures,
		QueueConfigs: r.queueConfigs,
	}, b.log)
	if err != nil {
		return fmt.Errorf("purge of deleted accounts: %w", err)
	}
	b.lifecycle.addRun("purge of deleted accounts", purge.Run)
	return nil
}
