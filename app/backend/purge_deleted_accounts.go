package backend

import (
	"context"
	"log/slog"

	"trunkline/cdrindex"
	"trunkline/config/aiprovider"
	"trunkline/config/callrecording"
	"trunkline/config/encryption"
	"trunkline/identity"
	"trunkline/ingest"
	"trunkline/internal/sqldb"
	"trunkline/origination"
	"trunkline/recording"
	"trunkline/settings"
	"trunkline/stats"
	"trunkline/stats/figures"
	"trunkline/webhook"
)

// Purged has the services whose data of a deleted account is purged.
type Purged struct {
	Recordings *recording.Service
	Policies   *callrecording.Service
	Encryption *encryption.Service
	Providers  *aiprovider.Service
	Webhooks   *webhook.Service
	Index      *cdrindex.Index
	Figures    *figures.Store

	// QueueConfigs is nil if their topic does not exist.
	QueueConfigs *stats.QueueConfigs
}

// Purge returns the job that purges deleted accounts.
func Purge(ctx context.Context, s *settings.Settings, db *sqldb.DB, directory *identity.Directory, purged Purged,
	log *slog.Logger) (*identity.Purge, error) {
	calls, err := origination.NewPurger(ctx, db)
	if err != nil {
		return nil, err
	}

	ingested, err := ingest.NewPurger(ctx, db)
	if err != nil {
		return nil, err
	}

	erasers := []identity.Eraser{
		{Kind: "recordings", Erase: purged.Recordings.PurgeAccount},
		{Kind: "recording policies", Erase: purged.Policies.PurgeAccount},
		{Kind: "recording keys", Erase: purged.Encryption.PurgeAccount},
		{Kind: "AI providers", Erase: purged.Providers.PurgeAccount},
		{Kind: "webhooks", Erase: purged.Webhooks.PurgeAccount},
		{Kind: "call records", Erase: purged.Index.PurgeAccount},
		{Kind: "figures", Erase: purged.Figures.PurgeAccount},
		{Kind: "calls", Erase: calls.PurgeAccount},
		{Kind: "Idempotency-Keys of ingest", Erase: ingested.PurgeAccount},
	}

	if purged.QueueConfigs != nil {
		erasers = append(erasers,
			identity.Eraser{Kind: "configuration of queues", Erase: purged.QueueConfigs.PurgeAccount})
	}

	return identity.NewPurge(directory, s.Account, erasers, log), nil
}
