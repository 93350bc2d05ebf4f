package app

import (
	"context"
	"fmt"

	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/internal/kafka"
	"trunkline/internal/selfcheck"
	"trunkline/recording"
	"trunkline/settings"
)

// buildRecordings builds the recording service. Recordings and the records of calls in index know
// each other.
func (a *App) buildRecordings(ctx context.Context, index *cdrindex.Index) (*recording.Service, error) {
	if !a.hasRole(settings.RoleAPI) {
		return nil, nil
	}
	store, closeStore, err := backend.Recordings(a.settings, a.log)
	if err != nil {
		return nil, fmt.Errorf("recordings: %w", err)
	}
	a.lifecycle.addClose("recordings' store", func(context.Context) error { return closeStore() })
	if bucket, ok := store.(*recording.S3); ok {
		a.stores = append(a.stores, selfcheck.Dependency{Name: "recordings", Ping: bucket.Ping,
			Advice: "check recordings.url: the bucket must exist, and its keys may read, write, list and delete objects in it"})
	}

	recordings, err := recording.New(ctx, a.settings.Recordings, recording.Deps{
		DB: a.db, Store: store, Keys: a.encryption, Calls: index, Audit: a.audit, Metrics: a.registry, Log: a.log, Tracer: a.tracer, CheckDisk: a.dataDir().CheckSpace,
		Publisher: ownEventPublisher{a.newProducer("recordings' producer", kafka.ProducerConfig{}), "recordings", a.tracer},
	})
	if err != nil {
		return nil, fmt.Errorf("recordings: %w", err)
	}
	index.ShowRecordings(recordings)
	a.lifecycle.addRun("recordings", recordings.Run)
	return recordings, nil
}
