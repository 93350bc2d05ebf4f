package app

import (
	"context"
	"fmt"

	"trunkline/api"
	"trunkline/app/backend"
	"trunkline/internal/kafka"
	"trunkline/recording"
)

// buildRecordings builds the recording service.
func (a *App) buildRecordings(ctx context.Context, deps *api.Deps) error {
	store, closeStore, err := backend.Recordings(a.settings, a.log)
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	a.lifecycle.addClose("recordings' store", func(context.Context) error { return closeStore() })
	recordings, err := recording.New(ctx, a.settings.Recordings, recording.Deps{
		DB: a.db, Store: store, Keys: a.encryption, Audit: a.audit, Metrics: a.registry, Log: a.log, Tracer: a.tracer, CheckDisk: a.checkDisk,
		Publisher: ownEventPublisher{a.newProducer("recordings' producer", kafka.ProducerConfig{}), "recordings", a.tracer},
	})
	if err != nil {
		return fmt.Errorf("recordings: %w", err)
	}
	a.lifecycle.addRun("recordings", recordings.Run)
	deps.Encryption, deps.Recordings = a.encryption, recordings
	a.purged.Recordings, a.purged.Encryption = recordings, a.encryption
	return nil
}
