package app

import (
	"context"
	"fmt"
	"path/filepath"

	"trunkline/app/backend"
	"trunkline/cdrindex"
	"trunkline/config/callrecording"
	"trunkline/identity"
	"trunkline/internal/kafka"
	"trunkline/internal/redisclient"
	"trunkline/internal/selfcheck"
	"trunkline/recording"
	"trunkline/settings"
)

// handlesCalls reports whether this process connects calls or takes requests about them: it then stores recordings,
// of calls or of clients, and knows the AI providers.
func (a *App) handlesCalls() bool {
	return a.hasRole(settings.RoleAPI) || a.hasRole(settings.RoleOrigination) || a.hasRole(settings.RoleAISession)
}

// buildRecordings builds the recording service and its recorder of calls. Recordings and the records
// of calls in index know each other.
func (a *App) buildRecordings(ctx context.Context, index *cdrindex.Index) (*recording.Service, error) {
	if !a.handlesCalls() {
		return nil, nil
	}

	policies, err := callrecording.New(ctx, a.db, accountPaths{a.identity.Directory}, a.audit)
	if err != nil {
		return nil, fmt.Errorf("recording policies: %w", err)
	}

	a.recordingPolicies = policies

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
		DB: a.db, Store: store, TakesDir: filepath.Join(a.settings.DataDir, "recordings-in-progress"),
		Keys: a.encryption, Policies: policies, Calls: index, Audit: a.audit, Metrics: a.registry, Log: a.log,
		Tracer: a.tracer, CheckDisk: a.dataDir().CheckSpace,
		Publisher: ownEventPublisher{a.newProducer("recordings' producer", kafka.ProducerConfig{}), "recordings",
			a.tracer},
	})
	if err != nil {
		return nil, fmt.Errorf("recordings: %w", err)
	}

	index.ShowRecordings(recordings)
	a.lifecycle.addRun("recordings", recordings.Run)
	a.recorder = recording.NewRecorder(recordings, &redisclient.HolderRequests[recording.Control]{
		Client: a.redis, Channel: a.settings.Redis.KeyPrefix + "recording:controls", Log: a.log,
	})
	a.lifecycle.addRun("recorder", a.recorder.Run) // after the calls have ended

	return recordings, nil
}

// accountPaths implements callrecording.Accounts.
type accountPaths struct{ directory *identity.Directory }

// Path returns the account, its parent, and so on to its root.
func (a accountPaths) Path(accountID string) []string { return a.directory.Tree().Path(accountID) }
