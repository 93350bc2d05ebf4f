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
)

// recordings are the recordings of calls and clients, their policies, and the recorder of calls.
type recordings struct {
	service  *recording.Service
	policies *callrecording.Service
	recorder *recording.Recorder
	stores   []selfcheck.Dependency // further backends to check
}

// buildRecordings builds the recording service and its recorder of calls; its parts are nil without a role
// that handles calls. Recordings and the records of calls in index know each other.
func buildRecordings(ctx context.Context, b *base, index *cdrindex.Index) (r recordings, err error) {
	if !b.handlesCalls() {
		return r, nil
	}

	r.policies, err = callrecording.New(ctx, b.db, accountPaths{b.identity.Directory}, b.audit)
	if err != nil {
		return r, fmt.Errorf("recording policies: %w", err)
	}

	store, closeStore, err := backend.Recordings(b.settings, b.log)
	if err != nil {
		return r, fmt.Errorf("recordings: %w", err)
	}

	b.lifecycle.addClose("recordings' store", func(context.Context) error { return closeStore() })
	if bucket, ok := store.(*recording.S3); ok {
		r.stores = append(r.stores, selfcheck.Dependency{Name: "recordings", Ping: bucket.Ping,
			Advice: "check recordings.url: the bucket must exist, and its keys may read, write, list and delete objects in it"})
	}

	r.service, err = recording.New(ctx, b.settings.Recordings, recording.Deps{
		DB: b.db, Store: store, LiveDir: filepath.Join(b.settings.DataDir, "recordings-in-progress"),
		Keys: b.sealedStores.encryption, Policies: r.policies, Calls: index, Audit: b.audit,
		Metrics: b.registry, Log: b.log,
		Tracer: b.tracer, CheckDisk: b.dataDir().CheckSpace,
		Publisher: ownEventPublisher{b.newProducer("recordings' producer", kafka.ProducerConfig{}), "recordings",
			b.tracer},
	})
	if err != nil {
		return r, fmt.Errorf("recordings: %w", err)
	}

	index.ShowRecordings(r.service)
	b.lifecycle.addRun("recordings", r.service.Run)
	r.recorder = recording.NewRecorder(r.service, &redisclient.HolderRequests[recording.Control]{
		Client: b.redis, Channel: b.settings.Redis.KeyPrefix + "recording:controls", Log: b.log,
	})
	b.lifecycle.addRun("recorder", r.recorder.Run) // after the calls have ended

	return r, nil
}

// accountPaths implements callrecording.Accounts.
type accountPaths struct{ directory *identity.Directory }

// Path returns the account, its parent, and so on to its root.
func (a accountPaths) Path(accountID string) []string { return a.directory.Tree().Path(accountID) }
