package backend

import (
	"context"
	"log/slog"

	"trunkline/cdrindex"
	"trunkline/config/aiprovider"
	"trunkline/config/encryption"
	"trunkline/config/settings"
	"trunkline/identity"
	"trunkline/ingest"
	"trunkline/internal/sqldb"
	"trunkline/origination"
	"trunkline/recording"
	"trunkline/stats"
	"trunkline/stats/figures"
	"trunkline/webhook"
)

// Purged are the packages with data of accounts.
type Purged struct {
	Recordings *recording.Service
	Encryption *encryption.Service
	Providers  *aiprovider.Service
	Webhooks   *webhook.Service
	Index      *cdrindex.Index
	Figures    *figures.Store

	// QueueConfigs is nil if their topic does not exist.
	QueueConfigs *stats.QueueConfigs
}

// Purge returns the job that purges deleted accounts.
func Purge(ctx context.Context, s *settings.Settings, db *sqldb.DB, directory *identity.Service, of Purged, log *slog.Logger) (*identity.Purge, error) {
	calls, err := origination.NewPurger(ctx, db)
	if err != nil {
		return nil, err
	}
	ingested, err := ingest.NewPurger(ctx, db)
	if err != nil {
		return nil, err
	}
	purgers := []identity.Purger{
		{Kind: "recordings", Purge: of.Recordings.PurgeAccount},
		{Kind: "recording keys", Purge: of.Encryption.PurgeAccount},
		{Kind: "AI providers", Purge: of.Providers.PurgeAccount},
		{Kind: "webhooks", Purge: of.Webhooks.PurgeAccount},
		{Kind: "call records", Purge: of.Index.PurgeAccount},
		{Kind: "figures", Purge: of.Figures.PurgeAccount},
		{Kind: "calls", Purge: calls.PurgeAccount},
		{Kind: "Idempotency-Keys of ingest", Purge: ingested.PurgeAccount},
	}
	if of.QueueConfigs != nil {
		purgers = append(purgers, identity.Purger{Kind: "configuration of queues", Purge: of.QueueConfigs.PurgeAccount})
	}
	return identity.NewPurge(directory, s.Account, purgers, log), nil
}
